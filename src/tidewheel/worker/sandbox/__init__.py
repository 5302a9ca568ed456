"""What stands between a task and the machine, one file a layer.

Each layer is set by the process that will be confined, before any user code runs in it, and cannot be taken back by it.
A layer that the kernel does not offer is left out and said to be missing (`layers.report`); one that it offers and then
refuses is an error, and the task does not start.
"""

"""Ways of running a task: in the event loop, in a process of a pool, as a command, as an HTTP call."""

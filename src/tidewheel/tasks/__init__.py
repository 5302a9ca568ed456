"""What a task is: a function under a name, with options. The SDK declares it, the worker runs it."""

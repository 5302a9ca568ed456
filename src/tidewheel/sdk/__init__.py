"""The Python face: declare tasks, enqueue jobs, wait for them. All of it is async once, with a synchronous twin."""

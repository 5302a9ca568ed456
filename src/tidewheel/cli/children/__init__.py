"""The programs that a worker's supervisor starts, each with `python -m`."""

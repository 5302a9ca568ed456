"""Pure records and decisions: no I/O, and every function is told the time."""

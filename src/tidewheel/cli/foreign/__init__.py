"""Reading what other schedulers run: one file a scheduler, which knows its dialect and nothing of commands."""

"""Stores: where jobs live. `base` is the specification; `sqlite` and `postgres` keep it."""

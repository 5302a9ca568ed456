"""Tidewheel with plain functions: each in one of two processes that nothing else runs in at the time."""

from bench.rivals.programs.tidewheel import Tidewheel, plain

program = Tidewheel(plain, ("--inline", "0", "--slots", "2"))

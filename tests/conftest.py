"""What every test may use."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ("tests.postgres", "tests.s3")
pytest.register_assert_rewrite("tests.contract.reference", "tests.contract.steps")

# How fast examples are made depends on what else the machine does, and says nothing about the program.
# A usual run makes the same examples each time, so that it fails or passes for everybody; a long one makes new ones.
settings.register_profile(
    "tidewheel",
    deadline=None,
    derandomize=not os.environ.get("TIDE_LONG"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tidewheel")

# A shell lets what it runs in the background ignore Ctrl-C, and everything started from there would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""What every test may use."""

import gc
import os
import shutil
import signal
from pathlib import Path

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

# Ten thousand tests are millions of objects that stay; looking through them again and again took a third of the time
# of collecting, and is of no use later either.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# A disk that must write through each commit of SQLite makes the tests wait, and longest when others use it, too.
MEMORY, ROOM = Path("/dev/shm"), 4 * 1024**3
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# A shell lets what it runs in the background ignore Ctrl-C, and everything started from there would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

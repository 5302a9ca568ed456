"""What every test may use."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from harness.postgres import memory_folder

pytest_plugins = ("tests.postgres", "tests.contract.postgres_backend", "tests.s3", "tests.sampling")
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


# A shell lets what it runs in the background ignore Ctrl-C, and everything started from there would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def memory_root() -> Iterator[Path]:
    root = memory_folder("tide-tests-")
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def memory_path(memory_root: Path) -> Iterator[Path]:
    """A folder in memory where there is room, for databases of tests that do not ask what a disk keeps.

    A disk must write through each commit, and is slowest when others use it, too. Not for sandboxed tasks: they may
    write to this memory.
    """
    folder = Path(tempfile.mkdtemp(dir=memory_root))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)

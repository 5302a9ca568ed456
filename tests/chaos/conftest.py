"""Real workers on real databases; a file of these tests is a kind of fault."""

import pytest

from harness.cluster import has_worker_command


@pytest.fixture(scope="session")
def worker_command_exists() -> bool:
    return has_worker_command()


@pytest.fixture(autouse=True)
def _needs_a_worker(worker_command_exists: bool) -> None:  # noqa: FBT001 - a fixture
    if not worker_command_exists:
        pytest.skip("`tide worker` does not exist yet")

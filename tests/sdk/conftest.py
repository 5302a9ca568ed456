"""What the tests of the SDK share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidewheel import App


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'jobs.db'}"


@pytest.fixture
def app(url: str) -> Iterator[App]:
    with App(url) as app:
        yield app

"""One place of each kind; S3 is a real server on this machine."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.s3 import S3
from tidewheel.blobs import Blobs, open_blobs


@pytest.fixture(params=["file", "memory", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh place of each kind."""
    if request.param == "file":
        return (tmp_path / "blobs").as_uri()
    if request.param == "memory":
        return "memory://"
    s3: S3 = request.getfixturevalue("s3")
    return s3.url(f"some/{uuid4()}")


@pytest.fixture
def blobs(url: str) -> Blobs:
    return open_blobs(url)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder on this host."""
    made = tmp_path / "here"
    made.mkdir()
    return made

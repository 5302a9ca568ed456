"""Clients against a real server in this process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.conftest import Api, serving
from tidewheel.client import AsyncClient


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path) as served:
        yield served


@pytest.fixture
async def client(api: Api) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(api.address.url) as made:
        yield made

"""What the tests of runs share."""

from collections.abc import AsyncIterator

import pytest

from tests.logs.scene import Scene


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.shipper.close()

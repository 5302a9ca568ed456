import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uvloop

from tests.worker.executors.tools import command_executor, process_executor
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.sandbox.layers import Grounds, report

LAYERS = {layer.name: layer for layer in report()}


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Use the loop that a host has; it hears things in another order than the standard one."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[ProcessExecutor]:
    async with process_executor(tmp_path) as executor:
        yield executor


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[CommandExecutor]:
    async with command_executor(tmp_path) as executor:
        yield executor


@pytest.fixture(params=["with namespaces", "without namespaces"])
def grounds(request: pytest.FixtureRequest) -> Grounds:
    """Both ways to hold a tree of processes together."""
    wanted = request.param == "with namespaces"
    if wanted and not LAYERS["pid-namespace"].active:
        pytest.skip(LAYERS["pid-namespace"].why)
    return Grounds(namespaces=wanted)

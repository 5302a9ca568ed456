"""A host as a process of its own."""

from contextlib import AsyncExitStack
from pathlib import Path

from tidewheel.blobs.cache import ArtifactCache
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.definition import COMMAND
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.wiring import open_workshop
from tidewheel.worker.child import Workshop, run_child
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.host import Host, HostTask


async def _build(shop: Workshop, stack: AsyncExitStack) -> Host:
    raise NotImplementedError


if __name__ == "__main__":
    run_child(open_workshop, _build)

"""A host as a process of its own."""

from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from tidewheel.blobs import ArtifactCache
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.definition import COMMAND
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.wiring import files_of, open_all
from tidewheel.worker.child import Workshop, run_child, work
from tidewheel.worker.execution import HostTask
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.executors.launching import LauncherOptions
from tidewheel.worker.executors.process import ProcessExecutor
from tidewheel.worker.floor import usual_isolation
from tidewheel.worker.host import Host
from tidewheel.worker.host_directory import artifact_directory, host_directory
from tidewheel.worker.sandbox.layers import Grounds

CACHE_BYTES: Final = 2 * 1024**3
"""How many bytes of artifacts are kept on this machine, for all workers of a user."""


async def _build(shop: Workshop, stack: AsyncExitStack) -> Host:
    setup = shop.setup
    scratch = stack.enter_context(host_directory(setup.scratch))
    hidden = (*files_of(setup.database), *setup.hidden, *([setup.secrets] if setup.secrets else []))
    options = LauncherOptions(app=setup.app, grounds=Grounds(hidden=hidden), environment=setup.environment)
    kept = artifact_directory(setup.scratch, otherwise=scratch / "artifacts")
    cache = ArtifactCache(kept, shop.blobs, CACHE_BYTES)
    command = CommandExecutor(
        options,
        clock=shop.clock,
        directory=scratch,
        slots=setup.slots,
        artifacts=cache.use,
        least=setup.least_isolation,
    )
    await command.open()
    stack.push_async_callback(command.close)
    entry = CatalogueEntry(kind=COMMAND, mode="process", isolation=usual_isolation(setup.least_isolation))
    tasks = {COMMAND: HostTask(command, entry)}
    hosted = [entry for entry in setup.catalogue if entry.mode == "process"]
    if hosted:
        process = ProcessExecutor(options, clock=shop.clock, directory=scratch, slots=setup.slots)
        loaded = {entry.kind for entry in await process.open()}  # the code may have changed since the worker began
        stack.push_async_callback(process.close)
        tasks |= {entry.kind: HostTask(process, entry) for entry in hosted if entry.kind in loaded}
    request = ClaimRequest(
        worker_id=setup.worker_id, limit=1, queues=setup.queues, kinds=frozenset(tasks), labels=setup.offer.labels
    )
    return Host(tasks, shop, request)


if __name__ == "__main__":
    run_child(partial(work, open_all=open_all, build=_build))

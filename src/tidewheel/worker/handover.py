"""What goes into a run and what comes out of it: results of parents, secrets, checkpoints, large results, files."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

import msgspec

from tidewheel.blobs import Blobs
from tidewheel.clock import Clock
from tidewheel.errors import Invalid, Unavailable
from tidewheel.model import dependency, secret
from tidewheel.model.dependency import fill_references, find_references
from tidewheel.model.job import Job, Run
from tidewheel.model.outcome import MAX_RESULT_BYTES
from tidewheel.store.base import SearchStore
from tidewheel.store.secrets import SecretStore
from tidewheel.store.telling import NoteStore
from tidewheel.tasks.signals import Fatal
from tidewheel.worker.execution import fetching
from tidewheel.worker.patience import Patience
from tidewheel.worker.sandbox.place import above_place
from tidewheel.worker.secrets import Secrets

T = TypeVar("T")

_RESULT: Final = f'"{dependency.REFERENCE}"'
_SECRET: Final = f'"{secret.REFERENCE}"'

STORED_WITHIN: Final = 30.0
"""Seconds for which what a run leaves behind is tried to be stored: it has run, and should not have to again."""
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0

_log = logging.getLogger(__name__)


class HandoverStore(SearchStore, NoteStore, SecretStore, Protocol):
    """What is asked of a store."""


class Handover:
    """Fetches and stores for the runs of one worker."""

    def __init__(self, store: HandoverStore, worker_id: UUID, blobs: Blobs, secrets: Secrets, clock: Clock) -> None:
        self._store = store
        self._worker_id = worker_id
        self._blobs = blobs
        self._secrets = secrets
        self._clock = clock

    async def saved(self, run: Run) -> str | None:
        """Return what an earlier attempt kept; the first has none. Raises Away."""
        if run.token == 1:
            return None
        with fetching():
            return await self._store.checkpoint_of(run.job_id)

    async def args(self, run: Run, hide: Callable[[Sequence[str]], None]) -> str:
        """Return the arguments of a run as JSON text, with the results of its parents and secrets put in.

        `hide` is told the secrets before anyone else is. Raises Fatal for one that is missing, and Away. They are
        looked for in what was submitted alone: what a parent returned cannot ask for any.
        """
        if _RESULT not in run.args and _SECRET not in run.args:
            return run.args
        args = await self._with_secrets(run, msgspec.json.decode(run.args), hide)
        with fetching():
            results = {parent: await self._result_of(parent) for parent in find_references(args)}
        return msgspec.json.encode(fill_references(args, results)).decode()

    async def place(self, run: Run, result: str | None) -> tuple[str | None, str | None]:
        """Return the result and its location: what is too large for a row goes to the blobs."""
        if result is None or len(result.encode()) <= MAX_RESULT_BYTES:
            return result, None
        return None, await self._stored(lambda: self._blobs.store_result(run.job_id, run.token, result))

    async def keep_files(self, run: Run, files: Mapping[str, Path]) -> None:
        """Store output files; they are found by the job that they are of. Raises Invalid for one behind a link."""
        for name, path in files.items():
            store = partial(self._blobs.store_output, inside=above_place(path, name))
            await self._stored(partial(store, run.job_id, run.token, name, path))

    async def _stored(self, store: Callable[[], Awaitable[T]]) -> T:
        """Store something, with patience while the blobs are away."""
        patience = Patience(self._clock, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        latest = self._clock.monotonic() + STORED_WITHIN
        while True:
            try:
                return await store()
            except Unavailable as error:
                if self._clock.monotonic() > latest:
                    raise
                _log.warning("what a run leaves behind waits to be stored: %s", error)
            await patience.pause()

    async def _with_secrets(self, run: Run, args: Any, hide: Callable[[Sequence[str]], None]) -> Any:
        try:
            names = secret.find_secrets(args)
        except Invalid as error:
            raise Fatal(str(error)) from None
        if not names:
            return args
        with fetching():
            values = await self._secrets.fetch(run.tenant, names, partial(self._stored_secrets, run))
        hide(list(values.values()))
        return secret.fill_secrets(args, values)

    async def _stored_secrets(self, run: Run, names: Sequence[str]) -> Mapping[str, str]:
        return await self._store.secrets_of_run(self._worker_id, run.job_id, run.token, names)

    async def _result_of(self, parent: UUID) -> object:
        job: Job = await self._store.get(parent)
        if job.result_location is None:
            return job.result
        return msgspec.json.decode(await self._blobs.read_result(job.id, job.token, job.result_location))

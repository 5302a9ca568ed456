"""The intake: submits that come one by one from many clients go to the store together, in shared commits.

There is no waiting for company: what arrives while a commit is under way goes with the next. One that is refused does
not touch its neighbours, and nobody hears of success before the commit.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from tidewheel.errors import Conflict, Invalid
from tidewheel.model.job import JobSpec, Submitted
from tidewheel.server.problems import RETRY_AFTER, Refused
from tidewheel.store.base import JobStore

MOST_IN_GROUP: Final = 250
AT_ONCE: Final = 2
"""Groups on their way to the store: while one waits for the disk the next is made ready."""
MOST_WAITING: Final = 20_000
MOST_MENDED: Final = 3
"""How often a group goes again without one that was refused, before each goes alone."""
_POSITION: Final = re.compile(r"specs\[([0-9]+)\]\.(.*)")


class Waiting(NamedTuple):
    """A job that was handed in, and whom to tell."""

    spec: JobSpec
    answer: "asyncio.Future[Submitted]"


class Intake:
    """Takes single jobs."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._waiting: list[Waiting] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Do what `JobStore.submit` does, for one job."""
        [spec] = specs
        if len(self._waiting) >= MOST_WAITING:
            raise Refused("overloaded", "too many submits wait", headers=[("retry-after", str(RETRY_AFTER))])
        if spec.id is not None:  # two of the same id must not meet in one group, of which neither knows
            return await self._store.submit(specs)
        answer: asyncio.Future[Submitted] = asyncio.get_running_loop().create_future()
        self._waiting.append(Waiting(spec, answer))
        if len(self._under_way) < AT_ONCE:
            self._under_way.add(task := asyncio.create_task(self._send()))
            task.add_done_callback(self._under_way.discard)
        return [await answer]

    async def _send(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:MOST_IN_GROUP], self._waiting[MOST_IN_GROUP:]
            await self._store_group([one for one in group if not one.answer.done()])

    async def _store_group(self, group: Sequence[Waiting]) -> None:
        for _ in range(MOST_MENDED):
            try:
                answers = await self._store.submit([one.spec for one in group])
            except Invalid as error:
                group = _without_bad(group, error)
            except Conflict:
                break
            except Exception as error:  # noqa: BLE001 - each of them must hear
                _refuse(group, error)
                return
            else:
                for one, submitted in zip(group, answers, strict=True):
                    _tell(one, submitted)
                return
        await self._store_singly(group)

    async def _store_singly(self, group: Sequence[Waiting]) -> None:
        answers = await asyncio.gather(*(self._store.submit([one.spec]) for one in group), return_exceptions=True)
        for one, answer in zip(group, answers, strict=True):
            if isinstance(answer, BaseException):
                _refuse([one], answer)
            else:
                _tell(one, answer[0])


def _without_bad(group: Sequence[Waiting], error: Invalid) -> Sequence[Waiting]:
    """Refuse the one that an error names, and return the others."""
    if len(group) == 1:
        _refuse(group, error)
        return []
    found = _POSITION.fullmatch(error.field)
    if found is None:
        return group
    position = int(found[1])
    _refuse([group[position]], Invalid(found[2], error.why))
    return [one for number, one in enumerate(group) if number != position]


def _tell(one: Waiting, submitted: Submitted) -> None:
    if not one.answer.done():
        one.answer.set_result(submitted)


def _refuse(group: Sequence[Waiting], error: BaseException) -> None:
    for one in group:
        if not one.answer.done():
            one.answer.set_exception(error)

"""Chains and groups: jobs that wait for one another, handed in together, all or none."""

from collections.abc import Sequence
from typing import Any, Generic, TypeAlias, TypeVar, cast, overload

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown
from tidewheel.model.job import JobSpec
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.job import GroupJob, Job
from tidewheel.sdk.task import NOTHING, Before, Signature

R = TypeVar("R")
H = TypeVar("H")


class Flow(Generic[H]):
    """Jobs that are handed in together; H is what one holds afterwards."""

    def __init__(self, parts: Sequence["Part"]) -> None:
        if not parts:
            raise Invalid("parts", f"a {type(self).__name__.lower()} needs at least one task")
        for part in parts:
            if not isinstance(part, Signature | Flow):
                raise Invalid("parts", f"must be calls such as task.s(…), chains and groups, without {shown(part)}")
        self.parts = tuple(parts)

    @property
    def desk(self) -> Desk:
        return self.parts[0].desk

    def enqueue(self, *, connection: Any = None) -> H:
        """Enqueue all of its jobs at once, or none."""
        specs: list[JobSpec] = []
        end = self.lay(NOTHING, specs)
        self.desk.submit(specs, connection)
        return self._handle(end)

    async def aenqueue(self, *, connection: Any = None) -> H:
        """Enqueue all of its jobs at once, or none."""
        specs: list[JobSpec] = []
        end = self.lay(NOTHING, specs)
        await self.desk.asubmit(specs, connection)
        return self._handle(end)

    def lay(self, before: Before, specs: list[JobSpec]) -> Before:
        """Add the jobs to a batch, behind others of it."""
        raise NotImplementedError

    def _handle(self, end: Before) -> H:
        jobs: list[Job[Any]] = [Job(self.desk, job_id) for job_id in end.ids]
        return cast("H", GroupJob(self.desk, jobs) if isinstance(end.value, list) else jobs[0])


class Chain(Flow[H]):
    """One after the other; each gets what the one before it returned."""

    def lay(self, before: Before, specs: list[JobSpec]) -> Before:
        """Add the jobs to a batch, behind others of it."""
        for part in self.parts:
            before = part.lay(before, specs)
        return before


class Group(Flow[GroupJob[R]]):
    """Beside one another; what follows in a chain gets the list of what they returned."""

    def lay(self, before: Before, specs: list[JobSpec]) -> Before:
        """Add the jobs to a batch, behind others of it."""
        ends = [part.lay(before, specs) for part in self.parts]
        return Before(tuple(job_id for end in ends for job_id in end.ids), [end.value for end in ends])


Part: TypeAlias = Signature[Any] | Flow[Any]


@overload
def chain(*parts: *tuple[*tuple[Part, ...], Signature[R]]) -> Chain[Job[R]]: ...
@overload
def chain(*parts: *tuple[*tuple[Part, ...], Flow[H]]) -> Chain[H]: ...
def chain(*parts: Part) -> Chain[Any]:  # type: ignore[misc]  # mypy compares no unpacked tuples
    """Return a chain: `chain(fetch.s(url), parse.s(), store.s())`."""
    return Chain(parts)


def group(*parts: Signature[R] | Chain[Job[R]]) -> Group[R]:
    """Return a group: `group(resize.s(1), resize.s(2))`; in a chain, what follows gets the list of results."""
    return Group(parts)

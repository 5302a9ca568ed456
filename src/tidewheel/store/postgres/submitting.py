"""Submitting: jobs go in whole batches or not at all."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from msgspec.structs import replace

from tidewheel.errors import AlreadyActive, Invalid, KeyReused
from tidewheel.model.cap import QueueCap
from tidewheel.model.job import JobSpec, Submitted
from tidewheel.model.job_phrases import Said, said_by, said_of_kinds
from tidewheel.model.states import WAITING, Cause, State
from tidewheel.model.submission import Prepared, check_ages, field_of, prepare_all
from tidewheel.store.bell import SOON
from tidewheel.store.joining import Inside
from tidewheel.store.postgres.capping import LockedCap, check_room, enforce, lock_caps, lock_key_caps
from tidewheel.store.postgres.connection import SQL, Connection, Raced
from tidewheel.store.postgres.ending import Ending, finish
from tidewheel.store.postgres.joining import again_if_raced, find_lanes, join
from tidewheel.store.postgres.parts import LaneBook, Part, id_maker
from tidewheel.store.postgres.phrases import arrays_of
from tidewheel.store.postgres.relating import NewJob, relate, store

T = TypeVar("T")
Slot = tuple[int, str]
"""A tenant and a key of theirs."""
Arrays = Sequence[list[Any] | None]
"""Of `add_jobs`; those of which nothing is to be said are None."""
_UNLESS_CAPPED: Final = False
_IN_ANY_CASE: Final = True


class Submitting(Part):
    """See `store.base.JobStore.submit`."""

    max_args_bytes: int

    async def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        jobs = prepare_all(specs, max_args_bytes=self.max_args_bytes)
        if not jobs:
            return []
        lanes = [job.lane for job in jobs]
        check_ages(jobs, datetime.fromtimestamp(self._db.time(), UTC))
        if self._lanes.knows(lanes) and not any(map(_is_special, jobs)):
            plain = await self._db.write(lambda connection: self._add_plain(connection, jobs))
            if plain is not None:
                self._tell_of_added(jobs)
                return plain

        async def add(connection: Connection) -> tuple[list[tuple[int, int]], list[Submitted]]:
            numbers = await self._lanes.ids(connection, lanes)
            return numbers, await _add_keyed(connection, jobs, numbers, [job.id or self._make_id() for job in jobs])

        numbers, answers = await self._db.transaction(add)
        self._lanes.remember(lanes, numbers)
        self._tell_of_added(jobs)
        return answers

    async def seen_before(self, specs: Sequence[JobSpec]) -> list[bool]:
        slots = [(spec.tenant, spec.idempotency_key) for spec in specs]
        asked = [tenant for tenant, _ in slots], [key for _, key in slots]
        rows = await self._db.read(lambda connection: connection.fetch(SQL["seen_keys"], *asked))
        known = {tuple(row) for row in rows}
        return [slot in known for slot in slots]

    def _tell_of_added(self, jobs: list[Prepared]) -> None:
        """Give a hint if one of the jobs is due soon."""
        soon = datetime.fromtimestamp(self._db.time(), UTC) + SOON
        if any(job.run_at <= soon if job.run_at else (job.delay or SOON) <= SOON for job in jobs):
            self._hints.send()

    async def _add_plain(self, connection: Connection, jobs: list[Prepared]) -> list[Submitted] | None:
        """Add jobs of which nothing must be looked up; None, and nothing happened, if a cap must be."""
        ids = [self._make_id() for _ in jobs]
        numbers = await self._lanes.ids(connection, [job.lane for job in jobs])
        columns = _columns(jobs, numbers, ids)
        kinds = self._kinds.unknown(_kinds(jobs, columns))
        status: Any = await connection.execute(SQL["add_jobs"], *columns, _UNLESS_CAPPED, *_phrases(columns, kinds))
        if status == "INSERT 0 0":
            return None
        self._kinds.remember(kinds)  # it was one statement by itself, and is committed
        return [Submitted(job_id, created=True) for job_id in ids]

    async def make_lanes(self, specs: Sequence[JobSpec]) -> None:
        lanes = [job.lane for job in prepare_all(specs, max_args_bytes=self.max_args_bytes)]
        if not self._lanes.knows(lanes):
            numbers = await self._db.transaction(lambda connection: self._lanes.ids(connection, lanes))
            self._lanes.remember(lanes, numbers)

    async def submit_within(self, connection: Any, specs: Sequence[JobSpec], *, waits: bool) -> list[Submitted]:
        jobs = prepare_all(specs, max_args_bytes=self.max_args_bytes)
        joined = await join(connection, waits=waits)
        if not jobs:
            return []
        check_ages(jobs, datetime.fromtimestamp(self._db.time(), UTC))
        numbers = await find_lanes(joined, [job.lane for job in jobs])
        make_id = id_maker(self._db)  # one of its own: this may be any thread
        ids = [job.id or make_id() for job in jobs]
        if not any(map(_is_special, jobs)):
            return await _add_keyed(joined, jobs, numbers, ids)
        return await again_if_raced(joined, lambda: _add_keyed(joined, jobs, numbers, ids))

    async def expect_commit(self) -> None:
        self._hints.send_for_a_while()

    async def transact(self, work: Callable[[Inside], T]) -> T:
        del work
        raise Invalid("transaction", "is for SQLite; with PostgreSQL use task.using(connection=…) in one of your own")


async def _add_keyed(
    connection: Connection, jobs: list[Prepared], numbers: list[tuple[int, int]], ids: list[UUID]
) -> list[Submitted]:
    """Add jobs of which some have keys, parents or ids. An idempotency key seen before wins over everything."""
    tenants = [tenant for _, tenant in numbers]
    # Whoever sends the same request has the same unique key: behind the lock its idempotency key is seen, too.
    await _lock_unique_keys(connection, jobs, tenants)
    # Caps before the jobs that are locked below: whoever drops some holds its cap already. Those of queues come first.
    capped = {(tenant, job.cap_key) for tenant, job in zip(tenants, jobs, strict=True) if job.cap_key is not None}
    locks_more = capped or any(job.after or job.unique_key for job in jobs)
    caps = await lock_caps(connection, [lane for lane, _ in numbers]) if locks_more else []
    key_caps = await lock_key_caps(connection, capped)
    firsts, repeats = _by_key(jobs, tenants)
    answers = await _answer_by_key(connection, jobs, firsts)
    rest = [index for index in range(len(jobs)) if index not in answers and index not in repeats]
    kept, replaced = await _answer_by_unique_key(connection, jobs, tenants, ids, rest)
    added = [index for index in rest if index not in kept]
    answers |= kept | {index: Submitted(ids[index], created=True) for index in added}
    first_seen = {slot: index for slot, index in firsts.items() if index in rest}
    await _add_keys(connection, jobs, first_seen, answers)
    # Who is replaced within its own batch gives up its key before it gets it.
    chosen = [replace(jobs[index], unique_key=None) if index in replaced else jobs[index] for index in added]
    new = [NewJob(ids[i], tenants[i], jobs[i], field_of("after", i, len(jobs))) for i in added]
    relations = await relate(connection, new)
    waits = relations and relations.waits
    columns = _columns(chosen, [numbers[index] for index in added], [ids[index] for index in added], waits)
    new_in = Newcomers([(tenants[i], jobs[i], ids[i]) for i in added if i not in replaced])
    for locked in key_caps:
        await check_room(connection, locked, len(new_in.under(locked)))
    if added:
        phrases = _phrases(columns, _kinds(chosen, columns))
        caps = await _insert(connection, columns, phrases, new_in, caps)
    if relations is not None:
        await store(connection, relations)
    await finish(connection, WAITING, [Ending.waiting(ids[index], Cause.CANCELLED, "replaced") for index in replaced])
    for locked in (*caps, *key_caps):
        await enforce(connection, locked, new_in.under(locked))
    answers |= {index: Submitted(answers[first].job_id, created=False) for index, first in repeats.items()}
    return [answers[index] for index in range(len(jobs))]


class Newcomers(NamedTuple):
    """The jobs that a submit brings, each with the number of its tenant."""

    jobs: list[tuple[int, Prepared, UUID]]

    def under(self, locked: LockedCap) -> list[UUID]:
        """Return those that a cap is about."""
        cap = locked.cap
        return [
            job_id
            for tenant, job, job_id in self.jobs
            if tenant == locked.tenant
            and (job.lane.queue == cap.queue if isinstance(cap, QueueCap) else job.cap_key == cap.key)
        ]


async def _insert(
    connection: Connection, columns: Arrays, phrases: Arrays, new_in: Newcomers, held: list[LockedCap]
) -> list[LockedCap]:
    """Insert jobs; if there are caps for their queues, under the locks of these, which are returned."""
    caps = held
    added = [] if caps else await connection.fetch(SQL["add_jobs"], *columns, _UNLESS_CAPPED, *phrases)
    if not added:
        caps = caps or await lock_caps(connection, columns[1] or [])
        for locked in caps:
            await check_room(connection, locked, len(new_in.under(locked)))
        added = await connection.fetch(SQL["add_jobs"], *columns, _IN_ANY_CASE, *phrases) if caps else []
    if len(added) != len(columns[0] or ()):
        raise Raced("a unique key was taken by a job that went round again")
    return caps


def _is_special(job: Prepared) -> bool:
    """Tell whether a job has anything that must be looked up."""
    return bool(job.idempotency_key or job.unique_key or job.after or job.id or job.cap_key)


def _by_key(jobs: list[Prepared], tenants: list[int]) -> tuple[dict[Slot, int], dict[int, int]]:
    """Tell who is the first of the batch with each idempotency key, and for those who repeat one, whom they repeat."""
    firsts: dict[Slot, int] = {}
    repeats: dict[int, int] = {}
    for index, job in enumerate(jobs):
        if job.idempotency_key is not None:
            first = firsts.setdefault((tenants[index], job.idempotency_key), index)
            if jobs[first].fingerprint != job.fingerprint:
                raise KeyReused(job.idempotency_key)
            if first != index:
                repeats[index] = first
    return firsts, repeats


async def _answer_by_key(connection: Connection, jobs: list[Prepared], firsts: dict[Slot, int]) -> dict[int, Submitted]:
    """Answer for the idempotency keys that were seen before."""
    answers: dict[int, Submitted] = {}
    if firsts:
        for tenant, key, fingerprint, job_id in await connection.fetch(SQL["find_keys"], *_names(firsts)):
            index = firsts[tenant, key]
            if fingerprint != jobs[index].fingerprint:
                raise KeyReused(key)
            answers[index] = Submitted(job_id, created=False)
    return answers


async def _add_keys(
    connection: Connection, jobs: list[Prepared], new: dict[Slot, int], answers: dict[int, Submitted]
) -> None:
    """Keep the idempotency keys that are new, each with the job that it was answered with."""
    if new:
        prints = [jobs[index].fingerprint for index in new.values()]
        answered = [answers[index].job_id for index in new.values()]
        if len(await connection.fetch(SQL["add_keys"], *_names(new), prints, answered)) != len(new):
            raise Raced("an idempotency key was taken meanwhile")


async def _lock_unique_keys(connection: Connection, jobs: list[Prepared], tenants: list[int]) -> None:
    slots = [(tenant, job.unique_key) for tenant, job in zip(tenants, jobs, strict=True) if job.unique_key is not None]
    if slots:
        await connection.execute(SQL["lock_unique_keys"], *_names(slots))


def _names(slots: Collection[Slot]) -> tuple[list[int], list[str]]:
    return [tenant for tenant, _ in slots], [key for _, key in slots]


async def _answer_by_unique_key(
    connection: Connection, jobs: list[Prepared], tenants: list[int], ids: list[UUID], rest: list[int]
) -> tuple[dict[int, Submitted], list[int]]:
    """Deal with the jobs that hold the unique keys asked for, and tell which of the batch replace one another."""
    asked = [index for index in rest if jobs[index].unique_key is not None]
    if not asked:
        return {}, []
    slots = [(tenants[index], str(jobs[index].unique_key)) for index in asked]
    rows = await connection.fetch(SQL["lock_unique"], *_names(slots))
    holders = {(row[1], row[2]): (row[0], row[3]) for row in rows}
    answers: dict[int, Submitted] = {}
    replaced: dict[UUID, Ending] = {}
    for index, slot in zip(asked, slots, strict=True):
        holder, state = holders.get(slot, (None, ""))
        if holder is not None and jobs[index].unique == "keep":
            answers[index] = Submitted(holder, created=False)
            continue
        if holder is not None:
            if jobs[index].unique == "reject" or state not in WAITING:
                raise AlreadyActive(holder, slot[1])
            replaced[holder] = Ending.waiting(holder, Cause.CANCELLED, "replaced")
        holders[slot] = (ids[index], State.QUEUED)
    await finish(connection, WAITING, [ending for holder, ending in replaced.items() if holder not in ids])
    return answers, [index for index in asked if ids[index] in replaced]


def _columns(
    jobs: Sequence[Prepared], numbers: Sequence[tuple[int, int]], ids: list[UUID], waits: list[int] | None = None
) -> list[list[Any] | None]:
    """Turn jobs into the arrays of `add_jobs`; what no job has is one NULL."""
    lanes = [lane for lane, _ in numbers]
    tenants = [tenant for _, tenant in numbers]
    keys = ["\x1f".join(job.limit_keys) if job.limit_keys else None for job in jobs]
    optional = (
        [job.labels for job in jobs],
        [job.options for job in jobs],
        [job.run_at for job in jobs],
        [job.delay for job in jobs],
        [job.start_by for job in jobs],
        keys,
        [job.idempotency_key for job in jobs],
        [job.unique_key for job in jobs],
        [job.schedule_id for job in jobs],
        waits or [],
        [job.on_parent_failure if job.after else None for job in jobs] if waits else [],
    )
    sparse: list[list[Any] | None] = [
        column if any(value is not None for value in column) else None for column in optional
    ]
    return [ids, lanes, tenants, [job.priority for job in jobs], [job.args for job in jobs], *sparse]


def _kinds(jobs: Sequence[Prepared], columns: Arrays) -> list[Said]:
    """Return that jobs are found by their kinds."""
    ids, _, tenants = columns[:3]
    return said_of_kinds(zip(tenants or (), ids or (), (job.lane.kind for job in jobs), strict=True))


def _phrases(columns: Arrays, kinds: list[Said]) -> Arrays:
    """Return what the jobs in the arrays of `add_jobs` are found by, as its last arrays."""
    ids, _, tenants, _, _, labels, options = columns[:7]
    said = kinds
    if labels is not None or options is not None:
        nothing = [None] * len(ids or ())
        jobs = zip(tenants or (), ids or (), labels or nothing, options or nothing, strict=True)
        said = [*kinds, *said_by(jobs)]
    return arrays_of(said) if said else (None, None, None)


async def known_by_key(connection: Connection, tenant: int, key: str, fingerprint: bytes) -> UUID | None:
    """Return the job that came with the same idempotency key before. Raises KeyReused."""
    row = await connection.fetchrow(SQL["find_keys"], [tenant], [key])
    if row is None:
        return None
    if row["fingerprint"] != fingerprint:
        raise KeyReused(key)
    known: UUID = row["job_id"]
    return known


async def add_own(connection: Connection, lanes: LaneBook, jobs: Sequence[Prepared]) -> None:
    """Add jobs that the store itself makes: they have ids, no parents, and no keys that were seen before."""
    if not jobs:
        return
    numbers = await lanes.ids(connection, [job.lane for job in jobs])
    ids = [job.id for job in jobs if job.id]
    keyed = {(numbers[at][1], job.idempotency_key): at for at, job in enumerate(jobs) if job.idempotency_key}
    await _add_keys(connection, list(jobs), keyed, {at: Submitted(ids[at], created=True) for at in keyed.values()})
    columns = _columns(jobs, numbers, ids)
    await connection.execute(SQL["add_jobs"], *columns, _IN_ANY_CASE, *_phrases(columns, _kinds(jobs, columns)))

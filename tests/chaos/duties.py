"""Something to do for every duty, and how to see that it was done.

What is done seldom is laid before its holder dies: it does a duty when it gets it, and not again for half a minute.
What is done as soon as it is wanted is laid after all holders are dead.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

import apsw
import asyncpg
import msgspec

from harness.arena import Arena
from harness.kinds import spec_of
from tests.builders import DAY, HOUR, MINUTE, SECOND, a_claim, a_job, a_worker
from tests.notify.receiving import Receiver
from tidewheel.blobs import open_blobs
from tidewheel.clock import SystemClock
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.ids import EPOCH, MILLISECOND, make_id
from tidewheel.model.log import LogLine
from tidewheel.model.notification import Event, SubscriptionSpec
from tidewheel.model.schedule import Schedule, ScheduleSpec
from tidewheel.model.states import State
from tidewheel.store.scheduling import SHARDS, shard_of
from tidewheel.triggers import Interval, Trigger, to_json

Done = Callable[[], Awaitable[bool]]
"""Tells whether something was done."""

NOBODY: Final = "nobody"
"""A queue that no worker serves."""
MANY: Final = 1_200
"""More children than are told with the end of their parent, and more lines than wait for others."""
AGES: Final = 3_000 * DAY
EVERY_SECOND: Final = msgspec.Raw(to_json(Trigger(rule=Interval(SECOND))))


class Beside:
    """The database of an arena, past all stores, for what no store would write."""

    def __init__(self, arena: Arena) -> None:
        self._url = None if arena.server is None else arena.server.url()
        self._file = arena.folder / "jobs.db"

    async def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement in which ``$1``, ``$2``, … stand for values, on tables without their schema."""
        return self._of_sqlite(statement, values) if self._url is None else await self._of_postgres(statement, values)

    async def add(self, table: str, key: str = "id", /, **values: Any) -> Done:
        """Write a row with a key, of which the answer tells whether it is gone."""
        row = {key: uuid4(), **values}
        places = ", ".join(f"${number}" for number, _ in enumerate(row, 1))
        await self.rows(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())

        async def gone() -> bool:
            return not await self.rows(f"SELECT 1 FROM {table} WHERE {key} = $1", row[key])

        return gone

    def _of_sqlite(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self._file))
        try:
            connection.set_busy_timeout(20_000)
            return list(connection.execute(statement.replace("$", "?"), [_plain(value) for value in values]))
        finally:
            connection.close()

    async def _of_postgres(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(self._url, server_settings={"search_path": "tidewheel"})
        try:
            return [tuple(row) for row in await connection.fetch(statement, *values)]
        finally:
            await connection.close()


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.bytes
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


class Work:
    """Makes something to do for each duty."""

    def __init__(self, arena: Arena, receiver: Receiver) -> None:
        self.schedules: list[Schedule] = []
        self._arena = arena
        self._store = arena.store
        self._beside = Beside(arena)
        self._receiver = receiver
        self._blobs = open_blobs(arena.blobs.as_uri())
        self._left: list[UUID] = []
        self._old = SystemClock().now() - AGES

    @property
    def seldom(self) -> Mapping[str, Callable[[], Awaitable[Done]]]:
        """For duties that are done every half minute or less often, and when they come to a new holder."""
        only_on_postgres = {} if self._arena.server is None else {"days": self._lose_a_day}
        return only_on_postgres | {
            "blocked": self._forget_a_child,
            "limits": self._spoil_a_counter,
            "unused-limits": self._leave_a_limit,
            "age": self._let_one_grow_old,
            "retention": lambda: self._beside.add("keeper", duties=self._duties(), until=self._old),
            "old-occurrences": self._leave_an_occurrence,
            "alerts": self._leave_a_queue_alone,
            "old-alerts": lambda: self._beside.add(
                "alert", rule="queue.age", subject="x", told="x", since=self._old, resolved_at=self._old
            ),
            "old-deliveries": self._leave_a_delivery,
            "audit": self._leave_an_entry,
            "artifacts": self._leave_an_artifact,
            "outputs": self._leave_an_output,
        }

    @property
    def often(self) -> Mapping[str, Callable[[], Awaitable[Done]]]:
        """For duties that are done as soon as they are wanted, or every few seconds."""
        return {
            "reaper": self._lose_a_worker,
            "expiry": lambda: self._ends(a_job(queue=NOBODY, start_by=self._now() + SECOND), State.EXPIRED),
            "dropping": self._drop,
            "gates": self._close_for_a_second,
            "unblocking": self._end_a_large_family,
            "census": self._miscount,
            "occurrences": self._schedule_in_every_shard,
            "statistics": self._end_one,
            "log-words": self._write_lines,
            "notifications": self._cancel_and_tell,
            "lateness": self._keep_one_waiting,
        }

    async def held(self) -> dict[str, tuple[Any, int]]:
        """Return who has each duty, of those who are there, and how often it has changed hands."""
        found = await self._beside.rows(
            "SELECT duty.name, holder, epoch FROM duty JOIN keeper ON keeper.id = holder WHERE until > $1", self._now()
        )
        return {name: (holder, epoch) for name, holder, epoch in found}

    async def clear(self) -> None:
        """End what nobody would run."""
        for job_id in self._left:
            await self._store.cancel(job_id)

    # What was forgotten, spoilt, or is old

    async def _forget_a_child(self) -> Done:
        parent = await self._submit(a_job(queue=NOBODY))
        child = await self._submit(a_job(after=(parent,), queue=NOBODY))
        await self._beside.rows("UPDATE job SET awaited = (1 = 0) WHERE id = $1", parent)
        await self._store.cancel(parent)
        return lambda: self._is(child, State.SKIPPED)

    async def _spoil_a_counter(self) -> Done:
        await self._store.set_limit("spoilt", 5)
        await self._beside.rows("UPDATE limit_key SET running = 3 WHERE key = $1", "spoilt")

        async def right() -> bool:
            return [limit.running for limit in await self._store.limits() if limit.key == "spoilt"] == [0]

        return right

    async def _leave_a_limit(self) -> Done:
        key = f"left={uuid4().hex}"
        [[tenant]] = await self._beside.rows("SELECT min(id) FROM tenant")
        await self._beside.rows(
            "INSERT INTO limit_key (tenant, key, rule, most) VALUES ($1, $2, $3, 1)", tenant, key, "left"
        )

        async def forgotten() -> bool:
            return key not in {limit.key for limit in await self._store.limits()}

        return forgotten

    async def _lose_a_day(self) -> Done:
        day = f"log_{self._now() + 6 * DAY:%Y%m%d}"
        await self._beside.rows(f"DROP TABLE IF EXISTS {day}")

        async def there() -> bool:
            return bool(await self._beside.rows("SELECT 1 FROM pg_class WHERE relname = $1", day))

        return there

    async def _let_one_grow_old(self) -> Done:
        young, old = await self._submit(a_job(queue=NOBODY)), self._old_id()
        await self._beside.rows("UPDATE job SET run_at = $2, id = $3 WHERE id = $1", young, self._old, old)
        return lambda: self._is(old, State.EXPIRED)

    async def _leave_a_queue_alone(self) -> Done:
        queue = f"alone-{uuid4().hex}"
        self._left.append(job_id := await self._submit(a_job(queue=queue)))
        await self._beside.rows("UPDATE job SET run_at = $2 WHERE id = $1", job_id, self._now() - HOUR)

        async def told() -> bool:
            return queue in {alert.subject for alert in await self._store.alerts(limit=1000)}

        return told

    async def _leave_an_occurrence(self) -> Done:
        values = {"source": "planned", "outcome": "missed", "fire_at": self._old, "recorded_at": self._old}
        return await self._beside.add("occurrence", "schedule_id", **values)

    async def _leave_a_delivery(self) -> Done:
        made = await self._store.add_channel(ChannelSpec(name=f"old-{uuid4().hex}", address="https://example.org"))
        times = dict.fromkeys(("created_at", "begun_at", "next_at", "ended_at"), self._old)
        texts = {"key": "x", "event": "dead", "state": "sent", "body": "{}", "text": "x"}
        return await self._beside.add("delivery", channel=made.channel.id, **times, **texts)

    async def _leave_an_entry(self) -> Done:
        entry = {"actor": "x", "role": "admin", "action": "x", "subject": "x"}
        return await self._beside.add("audit", id=self._old_id(), at=self._old, **entry)

    async def _leave_an_artifact(self) -> Done:
        digest = uuid4().hex * 2
        texts = {"tenant": "default", "digest": digest, "size": 1, "name": "x", "created_by": "x"}
        return await self._beside.add("artifact", created_at=self._old, used_at=self._old, **texts)

    async def _leave_an_output(self) -> Done:
        job_id = self._old_id()
        await self._blobs.store_result(job_id, 1, "1")

        async def gone() -> bool:
            return job_id not in (await self._blobs.jobs_with_outputs("", 1000))[0]

        return gone

    # What is wanted

    async def _lose_a_worker(self) -> Done:
        job_id = await self._submit(a_job(queue=(queue := f"lost-{uuid4().hex}")))
        worker = await self._store.register(a_worker("lost/runner-0", queues=(queue,), ttl=2 * SECOND))
        assert [run.job_id for run in (await self._store.claim(a_claim(worker.id, queues=(queue,)))).runs] == [job_id]
        self._left.append(job_id)

        async def taken_back() -> bool:
            job = await self._store.get(job_id)
            return (job.state, job.losses) == (State.QUEUED, 1)

        return taken_back

    async def _drop(self) -> Done:
        kind = f"unwanted-{uuid4().hex}"
        job_id = await self._submit(a_job(kind, queue=NOBODY))
        await self._store.close_gate(GateSpec(mode=GateMode.DROP, kind=kind, lasts=MINUTE))
        return lambda: self._is(job_id, State.DROPPED)

    async def _close_for_a_second(self) -> Done:
        gate = await self._store.close_gate(GateSpec(mode=GateMode.HOLD, kind="unwanted", lasts=SECOND))

        async def open_again() -> bool:
            return gate.id not in {other.id for other in await self._store.gates()}

        return open_again

    async def _end_a_large_family(self) -> Done:
        parent = await self._submit(a_job(queue=NOBODY))
        children = await self._store.submit([a_job(after=(parent,), queue=NOBODY)] * MANY)
        await self._store.cancel(parent)
        last = max(child.job_id for child in children)
        return lambda: self._is(last, State.SKIPPED)

    async def _miscount(self) -> Done:
        await self._beside.rows("INSERT INTO census (lane, state, priority, jobs) VALUES (987654, $1, 0, 7)", "queued")

        async def counted() -> bool:
            return not await self._beside.rows("SELECT 1 FROM census WHERE lane = 987654")

        return counted

    async def _schedule_in_every_shard(self) -> Done:
        job = spec_of("quick", self._arena.memory, "x", {})
        made: list[Schedule] = []
        while len({shard_of(schedule.id) for schedule in made}) < SHARDS:
            spec = ScheduleSpec(name=f"shard-{len(made)}", kind=job.kind, args=job.args, trigger=EVERY_SECOND)
            made.append(await self._store.create_schedule(spec))
        self.schedules += made

        async def all_fire() -> bool:
            return all([await self._store.occurrences(schedule.id, limit=1) for schedule in made])

        return all_fire

    async def _end_one(self) -> Done:
        await self._store.cancel(await self._submit(a_job(queue=NOBODY)))
        [[last]] = await self._beside.rows("SELECT max(id) FROM ended")

        async def folded() -> bool:
            return not await self._beside.rows("SELECT 1 FROM ended WHERE id <= $1", last)

        return folded

    async def _write_lines(self) -> Done:
        job_id, now = await self._submit(a_job(queue=NOBODY)), self._now()
        self._left.append(job_id)
        lines = [LogLine(job_id, 1, number, now, "stdout", text="x") for number in range(MANY)]
        await self._store.append_logs(lines)

        async def indexed() -> bool:
            return not await self._beside.rows("SELECT 1 FROM log_fresh")

        return indexed

    async def _cancel_and_tell(self) -> Done:
        job_id, told = await self._told_of(Event.CANCELLED)
        await self._store.cancel(job_id)
        return told

    async def _keep_one_waiting(self) -> Done:
        job_id, told = await self._told_of(Event.LATE)
        self._left.append(job_id)
        return told

    # Steps

    async def _submit(self, spec: Any) -> UUID:
        [submitted] = await self._store.submit([spec])
        return submitted.job_id

    async def _told_of(self, event: Event) -> tuple[UUID, Done]:
        """Submit a job of a kind of its own, of which someone wants to hear this, and a second late at most."""
        name = f"hook-{uuid4().hex}"
        await self._store.add_channel(ChannelSpec(name=name, address=self._receiver.address))
        wish = SubscriptionSpec(channel=name, events=frozenset({event}), kind=name, late_after=SECOND)
        await self._store.subscribe(wish)

        async def delivered() -> bool:
            return any(name.encode() in got.body for got in self._receiver.got)

        return await self._submit(a_job(name, queue=NOBODY)), delivered

    async def _ends(self, spec: Any, state: State) -> Done:
        job_id = await self._submit(spec)
        return lambda: self._is(job_id, state)

    async def _is(self, job_id: UUID, state: State) -> bool:
        return (await self._store.get(job_id)).state is state

    def _old_id(self) -> UUID:
        return make_id((self._old - EPOCH) // MILLISECOND, uuid4().int % 2**70)

    def _duties(self) -> Any:
        return "[]" if self._arena.server is None else []

    def _now(self) -> datetime:
        return SystemClock().now()

"""Each rule of the alerts, on each store: it fires, is told, acknowledged, silent in its window, and resolved.

What the databases themselves are asked for (snapshots, dead rows, replicas, the disk) is put among the facts here; that
they are found where they arise is shown in `tests/postgres_store` and `tests/sqlite`.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias, cast

import msgspec
import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_schedule, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.planning import record_ahead
from tests.contract.steps import claim, finish, submit
from tests.contract.test_log_search import say
from tidewheel.keeper.alerts import Watch
from tidewheel.model.alert import (
    Alert,
    AlertFacts,
    AlertState,
    DiskFact,
    ReplicaFact,
    Rule,
    SizeFact,
    SnapshotFact,
    TableFact,
    WindowSpec,
)
from tidewheel.model.alert_bounds import Bounds
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.misfire import Misfire
from tidewheel.model.notification import Answer, Event, SubscriptionSpec
from tidewheel.model.resources import Needs, Offer
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

pytestmark = pytest.mark.native("occurrences are made, and alerts are watched, by the server")


BOUNDS: Final = Bounds(database_size=1 << 40)


class Ward:
    """A store with a worker, where things go wrong and right again."""

    def __init__(self, backend: Backend, store: Store, worker: Worker) -> None:
        self.backend, self.store, self.worker = backend, store, worker
        self.more: dict[str, Any] = {}
        """Facts about the database, as if it were so."""

    async def alert_facts(self) -> AlertFacts:
        return msgspec.structs.replace(await self.store.alert_facts(), **{"disks": [], "snapshots": [], **self.more})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def pass_by(self, time: timedelta) -> None:
        """Let time pass in which the worker is alive."""
        while time > timedelta(0):
            await self.backend.clock.advance(min(time, 30 * MINUTE))
            await self.store.beat([self.worker.id])
            time -= 30 * MINUTE

    async def finish_all(self, cause: Cause = Cause.RETURNED) -> None:
        while runs := await claim(self.store, self.worker, 200):
            await finish(self.store, self.worker, runs, cause)

    async def firing(self, rule: Rule, subject: str) -> list[Alert]:
        """Look once, and return what fires by a rule about something."""
        await Watch(cast("Store", self), BOUNDS).run_once()
        found = await self.store.alerts(state=AlertState.FIRING)
        return [alert for alert in found if (alert.rule, alert.subject) == (rule, subject)]

    async def heard(self) -> list[str]:
        """Deliver what was told, and return the words."""
        while await self.store.spread_happenings():
            pass
        said = []
        while parcels := await self.store.take_deliveries():
            for parcel in parcels:
                assert await self.store.close_delivery(parcel, Answer(accepted=True, told="200"))
                said.append(parcel.text)
        return said


Step: TypeAlias = Callable[[Ward], Awaitable[None]]


async def _late(ward: Ward) -> None:
    schedule = await ward.store.create_schedule(a_schedule("late"))
    await ward.store.trigger_schedule(schedule.id)
    await ward.pass_by(6 * MINUTE)


async def _missed(ward: Ward) -> None:
    await ward.store.create_schedule(a_schedule("missed", misfire=Misfire(policy="skip", grace=SECOND)))
    await ward.pass_by(10 * MINUTE + 30 * SECOND)
    await record_ahead(ward.store, SECOND)


async def _made(ward: Ward) -> None:
    await record_ahead(ward.store, 2 * MINUTE)
    await ward.pass_by(2 * MINUTE)


async def _overdue(ward: Ward) -> None:
    await ward.store.create_schedule(a_schedule("overdue"))
    await ward.pass_by(7 * MINUTE)


async def _waiting(ward: Ward) -> None:
    await submit(ward.store)
    await ward.pass_by(11 * MINUTE)


async def _unserved(ward: Ward) -> None:
    await submit(ward.store, queue="lonely")
    await ward.pass_by(2 * MINUTE)


async def _served(ward: Ward) -> None:
    await ward.store.register(a_worker("other", queues=("lonely",), ttl=HOUR))


async def _beyond_all(ward: Ward) -> None:
    await submit(ward.store, "special", needs=Needs(labels={"gpu": "yes"}))
    await ward.pass_by(2 * MINUTE)


async def _within_reach(ward: Ward) -> None:
    await ward.store.register(a_worker("able", offer=Offer(labels={"gpu": "yes"}), ttl=HOUR))


async def _dying(ward: Ward) -> None:
    await ward.store.submit(some_jobs(100, "dying"))
    await ward.finish_all(Cause.GAVE_UP)
    await ward.store.fold_statistics()


async def _long_ago(ward: Ward) -> None:
    await ward.pass_by(12 * MINUTE)


async def _clock_off(ward: Ward) -> None:
    await ward.store.beat([ward.worker.id], clock=ward.backend.clock.now() + 9 * SECOND)


async def _clock_right(ward: Ward) -> None:
    await ward.store.beat([ward.worker.id], clock=ward.backend.clock.now())


async def _not_indexed(ward: Ward) -> None:
    await say(ward.store, await submit(ward.store), ["one", "two"])
    await ward.pass_by(6 * MINUTE)


async def _indexed(ward: Ward) -> None:
    await ward.finish_all()
    while await ward.store.index_logs():
        pass


def _as_if(**facts: Any) -> Step:
    async def seem(ward: Ward) -> None:
        ward.more = facts

    return seem


SCENES: Final[Mapping[Rule, tuple[str, Step, Step]]] = {
    Rule.CLOCK: ("w", _clock_off, _clock_right),
    Rule.HELD_SNAPSHOT: ("pid 17", _as_if(snapshots=[SnapshotFact("pid 17", HOUR)]), _as_if()),
    Rule.BLOAT: ("job", _as_if(tables=[TableFact("job", 7, 2_000_000)]), _as_if(tables=[TableFact("job", 7, 200)])),
    Rule.REPLICA_LAG: ("r1", _as_if(replicas=[ReplicaFact("r1", 1 << 30, None)]), _as_if()),
    Rule.DISK_SPACE: ("x.db", _as_if(disks=[DiskFact("x.db", 1 << 20)]), _as_if(disks=[DiskFact("x.db", 1 << 40)])),
    Rule.DATABASE_SIZE: ("x", _as_if(sizes=[SizeFact("x", 2 << 40)]), _as_if(sizes=[SizeFact("x", 1 << 30)])),
    Rule.LOG_INDEX: ("index", _not_indexed, _indexed),
    Rule.QUEUE_AGE: ("default", _waiting, Ward.finish_all),
    Rule.NO_WORKER: ("lonely", _unserved, _served),
    Rule.NO_WORKER_OF_KIND: ("special", _beyond_all, _within_reach),
    Rule.FAILURE_RATE: ("dying", _dying, _long_ago),
    Rule.DEAD_LETTERS: ("dying", _dying, _long_ago),
    Rule.SCHEDULE_LATE: ("late", _late, Ward.finish_all),
    Rule.SCHEDULE_MISSED: ("missed", _missed, _made),
    Rule.SCHEDULE_OVERDUE: ("overdue", _overdue, _made),
}
"""For each rule what it is about, how that comes about, and how it is over."""


async def test_each_rule_fires_and_resolves_is_told_acknowledged_and_silent_in_its_window(
    backend: Backend, store: Store
) -> None:
    ward = Ward(backend, store, await store.register(a_worker("w", ttl=HOUR)))
    await store.add_channel(ChannelSpec(name="ops", address="https://example.org"))
    wanted = frozenset([Event.FIRING, Event.RESOLVED])
    await store.subscribe(SubscriptionSpec(channel="ops", events=wanted, text="$event $detail"))
    assert set(SCENES) == set(Rule)
    for rule, (subject, wrong, right) in SCENES.items():
        assert await ward.firing(rule, subject) == [], rule
        await wrong(ward)
        found = await ward.firing(rule, subject)
        assert len(found) == 1, (rule, await ward.alert_facts())
        alert = found[0]
        assert f"alert.firing {alert.told}" in await ward.heard(), rule
        assert (await store.acknowledge(alert.id, "ann")).acknowledged_by == "ann"
        await ward.firing(rule, subject)
        assert f"alert.firing {alert.told}" not in await ward.heard(), "it is told once"

        now = backend.clock.now()
        window = await store.add_window(WindowSpec(start=now, end=now + HOUR, rules=frozenset([rule])))
        await right(ward)
        (same,) = await ward.firing(rule, subject)
        assert (same.id, same.acknowledged_by) == (alert.id, "ann"), "in its window nothing turns"
        await store.remove_window(window.id)
        assert await ward.firing(rule, subject) == [], rule
        assert f"alert.resolved {alert.told}" in await ward.heard(), rule

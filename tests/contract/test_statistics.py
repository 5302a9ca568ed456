"""Numbers over time: every end is counted once, whoever folds them, how often, and when."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_job, a_worker, outcome_of, some_jobs
from tests.contract.backends import START, Backend
from tests.contract.steps import claim, finish, settle, start, stores_on, submit
from tidewheel.errors import Invalid
from tidewheel.model import statistics
from tidewheel.model.histogram import bucket_of
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.statistics import StatFilter, StatPoint, StatRow, Sums
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

WORKER = a_worker(ttl=HOUR)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[StatRow]:
    """All rows that were read to be added up."""
    seen: list[StatRow] = []
    add = Sums.add

    def noted(rows: Iterable[StatRow]) -> Iterator[StatRow]:
        for row in rows:
            seen.append(row)
            yield row

    monkeypatch.setattr(Sums, "add", lambda sums, rows: add(sums, noted(rows)))
    return seen


def span(**fields: Any) -> StatFilter:
    return StatFilter(**{"since": START - HOUR, "before": START + DAY, **fields})


async def totals(store: Store, **fields: Any) -> Counter[tuple[str, str, State]]:
    found: Counter[tuple[str, str, State]] = Counter()
    for point in await store.statistics(span(**fields)):
        found[point.queue, point.kind, point.state] += point.jobs
    return found


async def fold_all(store: Store, limit: int = 1000) -> None:
    while await store.fold_statistics(limit=limit):
        pass


async def test_what_ended_is_counted_at_once_and_stays_so_when_it_is_folded(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.submit([*some_jobs(5, "a"), *some_jobs(3, "b", queue="default")])
    runs = await claim(store, worker, 8)
    await finish(store, worker, runs[:6])
    await finish(store, worker, runs[6:], Cause.GAVE_UP)
    await store.cancel(await submit(store, "c"))
    expected = Counter((run.queue, run.kind, State.SUCCEEDED) for run in runs[:6])
    expected += Counter((run.queue, run.kind, State.DEAD) for run in runs[6:])
    expected["default", "c", State.CANCELLED] += 1
    assert await totals(store) == expected
    await fold_all(store)
    assert await totals(store) == expected
    assert await backend.count("ended") == 0
    assert await store.fold_statistics() == 0


@pytest.mark.native("the numbers of all tenants are the server's own")
async def test_how_many_ever_ended_never_falls_whatever_is_folded_or_removed(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.submit(some_jobs(3))
    await finish(store, worker, await claim(store, worker, 3))
    assert await store.finished() == {("default", State.SUCCEEDED): 3}
    await fold_all(store, 1)
    await backend.clock.advance(500 * DAY)
    await fold_all(store)
    assert await store.finished() == {("default", State.SUCCEEDED): 3}
    await store.cancel(await submit(store, "c"))
    expected = {("default", State.SUCCEEDED): 3, ("default", State.CANCELLED): 1}
    assert await store.finished() == expected
    await fold_all(store)
    assert await store.finished() == expected


async def test_delays_and_run_times_are_counted_in_buckets(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(4))
    await backend.clock.advance(3 * SECOND)
    runs = await claim(store, worker)
    await backend.clock.advance(40 * SECOND)
    await finish(store, worker, runs)
    await store.cancel(await submit(store))
    for _ in range(2):
        points = {point.state: point for point in await store.statistics(span(step=HOUR))}
        done, cancelled = points[State.SUCCEEDED], points[State.CANCELLED]
        assert (done.delays, done.runs) == ({bucket_of(3): 4}, {bucket_of(40): 4})
        assert (cancelled.jobs, cancelled.delays, cancelled.runs) == (1, {}, {})
        await fold_all(store)


async def test_points_are_as_long_as_asked_for(backend: Backend, store: Store, worker: Worker) -> None:
    for number in range(6):
        await store.beat([worker.id])
        await settle(store, worker, await start(store, worker))
        if number == 3:
            await fold_all(store)
        await backend.clock.advance(20 * MINUTE)

    async def at(step: timedelta) -> dict[timedelta, int]:
        return {point.at - START: point.jobs for point in await store.statistics(span(step=step))}

    assert await at(HOUR) == {0 * HOUR: 3, HOUR: 3}
    assert await at(MINUTE) == {20 * number * MINUTE: 1 for number in range(6)}
    assert await at(30 * MINUTE) == {0 * HOUR: 2, 30 * MINUTE: 1, HOUR: 2, 90 * MINUTE: 1}


async def test_minutes_of_two_days_ago_become_hours_and_nothing_gets_lost(
    backend: Backend, store: Store, worker: Worker
) -> None:
    for _ in range(5):
        await store.beat([worker.id])
        await settle(store, worker, await start(store, worker))
        await fold_all(store)
        await backend.clock.advance(25 * MINUTE)
    before = await store.statistics(span(step=HOUR))
    rows = await backend.count("statistic")
    await backend.clock.advance(3 * DAY)
    await fold_all(store, limit=2)
    assert await store.statistics(span(step=HOUR)) == before
    assert (rows, await backend.count("statistic")) == (5 + 2, 2), "hours are kept from the beginning"
    assert [point.jobs for point in await store.statistics(span())] == [3, 2]
    await backend.clock.advance(500 * DAY)
    await fold_all(store)
    assert await backend.count("statistic") == 0


async def test_a_chart_of_thirty_days_adds_up_without_any_job(backend: Backend, store: Store) -> None:
    """The jobs themselves are gone, and so are the minutes, except those of two days; the charts tell of all."""
    first = backend.clock.now()
    happened: Counter[tuple[str, State]] = Counter()
    for number in range(60):
        worker = await store.register(WORKER)
        await store.submit([*some_jobs(2, "mail"), a_job("report", tenant="acme")])
        runs = await claim(store, worker, 3)
        dead = [run for run in runs if run.kind == "report" and number % 3 == 0]
        await finish(store, worker, [run for run in runs if run not in dead])
        await finish(store, worker, dead, Cause.GAVE_UP)
        happened.update((run.kind, State.DEAD if run in dead else State.SUCCEEDED) for run in runs)
        await fold_all(store)
        await backend.clock.advance(12 * HOUR + MINUTE)
    await backend.clock.advance(DAY)
    while await store.retire(dict.fromkeys(FINAL, 0 * DAY)):
        pass
    assert await backend.count("job_history") == 0

    async def counted(step: timedelta, **fields: Any) -> Counter[tuple[str, State]]:
        before = first + 33 * DAY
        points = await store.statistics(StatFilter(since=first, before=before, step=step, **fields))
        return Counter({key: jobs for key, jobs in _by_kind(points).items() if jobs})

    for step in (HOUR, 6 * HOUR, DAY, 45 * MINUTE):
        assert await counted(step) == happened, step
    assert sum((await counted(DAY, kind="mail")).values()) == 120
    assert sum((await counted(HOUR, tenant="acme")).values()) == 60
    minutes = 4 * 3
    assert await backend.count("statistic") <= 60 * 2 + minutes


def _by_kind(points: list[StatPoint]) -> Counter[tuple[str, State]]:
    found: Counter[tuple[str, State]] = Counter()
    for point in points:
        found[point.kind, point.state] += point.jobs
        assert sum(point.runs.values()) == sum(point.delays.values()) == point.jobs
    return found


async def test_tenants_kinds_and_queues_are_told_apart(store: Store, worker: Worker) -> None:
    await store.submit([a_job("a", tenant="x"), a_job("a", tenant="y"), a_job("b", tenant="x")])
    await finish(store, worker, await claim(store, worker))
    for _ in range(2):
        assert sum((await totals(store, tenant="x")).values()) == 2
        assert sum((await totals(store, tenant="x", kind="a")).values()) == 1
        assert sum((await totals(store, queue="default")).values()) == 3
        assert await totals(store, queue="other") == Counter()
        assert await totals(store, tenant="nobody") == Counter()
        await fold_all(store)


@pytest.mark.parametrize("seed", range(3))
async def test_totals_are_what_happened_however_it_is_folded(backend: Backend, seed: int) -> None:
    """Two nodes do the same duty at once, some of it is broken off, and jobs end meanwhile in all ways."""
    chance = random.Random(seed)
    one, other = await stores_on(backend, 2)
    worker = await one.register(WORKER)
    happened: Counter[tuple[str, str, State]] = Counter()
    for _ in range(12):
        await one.submit([a_job(chance.choice("ab")) for _ in range(chance.randint(1, 8))])
        runs = await claim(one, worker, chance.randint(1, 8))
        outcomes = [
            outcome_of(run, chance.choice([Cause.RETURNED, Cause.RETURNED, Cause.GAVE_UP, Cause.FAILED]))
            for run in runs
        ]
        folding = [
            asyncio.ensure_future(store.fold_statistics(limit=chance.randint(1, 3))) for store in (one, other, other)
        ]
        verdicts = await one.settle(worker.id, outcomes)
        folding[chance.randrange(3)].cancel()
        await asyncio.gather(*folding, return_exceptions=True)
        assert set(verdicts) <= {Verdict.ACCEPTED}
        # What is reported again is not counted again.
        await other.settle(worker.id, outcomes)
        for run, outcome in zip(runs, outcomes, strict=True):
            if outcome.cause is not Cause.FAILED:
                state = State.SUCCEEDED if outcome.cause is Cause.RETURNED else State.DEAD
                happened[run.queue, run.kind, state] += 1
        assert await totals(other) == happened
        await backend.clock.advance(timedelta(seconds=chance.randint(0, 90)))
    await fold_all(other)
    assert await totals(one) == happened
    points: list[StatPoint] = await one.statistics(span())
    assert sum(sum(point.runs.values()) for point in points) == sum(happened.values())


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"before": START - 2 * HOUR}, "before"),
        ({"step": 30 * SECOND}, "step"),
        ({"step": 90 * SECOND}, "step"),
        ({"since": START - 30 * DAY}, "step"),
        ({"kind": "a b\n"}, "kind"),
    ],
)
async def test_what_makes_no_sense_is_refused(store: Store, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid, match=field):
        await store.statistics(span(**wrong))


@pytest.mark.parametrize("folded", [False, True])
async def test_more_numbers_than_an_answer_may_have_are_refused_before_all_were_read(
    store: Store, worker: Worker, read: list[StatRow], monkeypatch: pytest.MonkeyPatch, *, folded: bool
) -> None:
    monkeypatch.setattr(statistics, "MOST_ROWS", 3)
    for kind in "abcdefgh":
        await settle(store, worker, await start(store, worker, kind))
    if folded:
        await fold_all(store)
    with pytest.raises(Invalid, match=r"since.*more than 3 points: ask for less time, a longer step, or one kind"):
        await store.statistics(span())
    assert len(read) == 4
    assert [point.kind for point in await store.statistics(span(kind="a"))] == ["a"]


@pytest.mark.parametrize("step", [MINUTE, HOUR])
async def test_numbers_between_any_two_instants_stay_the_same_when_they_are_folded(
    backend: Backend, store: Store, worker: Worker, step: timedelta
) -> None:
    await backend.clock.advance(45 * SECOND)
    await settle(store, worker, await start(store, worker))
    half = START + 30 * SECOND
    spans = (
        span(since=half, before=half + HOUR, step=step),
        span(before=half, step=step),
        span(since=half + MINUTE, step=step),
        span(before=START, step=step),
    )
    before = [sum(point.jobs for point in await store.statistics(where)) for where in spans]
    await fold_all(store)
    assert [sum(point.jobs for point in await store.statistics(where)) for where in spans] == before

"""Dead letters: their groups, lists of them, and how they are sent round again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, state_of, submit
from tidewheel.errors import Conflict, Invalid, NotFound
from tidewheel.model.dead_letter import DeadFilter
from tidewheel.model.fingerprint import fingerprint_of
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.pages import Page
from tidewheel.store.postgres.dead_letters import DeadLetters as PostgresDeadLetters
from tidewheel.store.sqlite.dead_letters import DeadLetters as SqliteDeadLetters

NO_ANSWER = Failure(reason="error", message="no answer after 3 s")
NO_HOST = Failure(reason="error", message="no such host")


async def die(
    store: Store, worker: Worker, number: int = 1, error: Failure = NO_ANSWER, kind: str = "call", **fields: Any
) -> list[UUID]:
    """Let so many jobs die, and return their ids, oldest first."""
    await store.beat([worker.id])
    answers = await store.submit(some_jobs(number, kind, **fields))
    queues = (fields.get("queue", "default"),)
    runs = await claim(store, worker, number, queues=queues)
    assert len(runs) == number
    await store.settle(worker.id, [outcome_of(run, Cause.GAVE_UP, error=error) for run in runs])
    return sorted(answer.job_id for answer in answers)


async def redrive_all(store: Store, where: DeadFilter, limit: int = 1000, rate: float | None = None) -> list[UUID]:
    sent: list[UUID] = []
    after: UUID | None = None
    while True:
        piece = await store.redrive_dead(where, limit=limit, after=after, rate=rate)
        sent += piece.jobs
        if piece.next is None:
            return sent
        after = piece.next


async def test_dead_letters_fall_into_groups_by_kind_and_fingerprint(
    backend: Backend, store: Store, worker: Worker
) -> None:
    start = backend.clock.now()
    await die(store, worker, 2)
    await backend.clock.advance(MINUTE)
    late = await die(store, worker, 1, Failure(reason="error", message="no answer after 99 s"))
    await die(store, worker, 2, NO_HOST)
    await die(store, worker, 1, kind="mail")
    first, second, third = await store.dead_groups()
    assert (first.kind, first.jobs, first.tenant) == ("call", 3, "default")
    assert (first.first_seen, first.last_seen) == (start, start + MINUTE)
    assert first.sample == late[-1]
    assert first.error == Failure(reason="error", message="no answer after 99 s")
    assert first.fingerprint == fingerprint_of(NO_ANSWER) == third.fingerprint == (await store.get(late[0])).fingerprint
    assert (second.kind, second.jobs, second.fingerprint) == ("call", 2, fingerprint_of(NO_HOST))
    assert (third.kind, third.jobs) == ("mail", 1)
    assert await store.dead_groups(limit=1) == [first]
    assert await store.dead_groups(DeadFilter(kind="mail")) == [third]


@pytest.mark.parametrize("then", ["cancelled", "dead again"])
async def test_what_happened_to_a_dead_letter_while_it_was_chosen_is_not_undone(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """Another redrive sent it round in between, and then someone cancelled it, or it died a second time."""
    (job_id,) = await die(store, worker)

    async def in_between() -> None:
        assert (await store.redrive_dead(DeadFilter())).jobs == [job_id]
        if then == "cancelled":
            await store.cancel(job_id)
            return
        (run,) = await claim(store, worker)
        await store.settle(worker.id, [outcome_of(run, Cause.GAVE_UP, error=NO_HOST)])

    interrupt_redrives(monkeypatch, in_between)
    assert (await store.redrive_dead(DeadFilter())).jobs == []
    assert await state_of(store, job_id) is (State.CANCELLED if then == "cancelled" else State.DEAD)


def interrupt_redrives(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[None]]) -> None:
    """Let something happen once, between the choice of the next redrive and its writing."""
    waiting = [happens]
    for part in (SqliteDeadLetters, PostgresDeadLetters):

        async def tell(self: Any, jobs: list[UUID], told: Any = part._tell_children_of) -> None:
            if waiting:
                await waiting.pop()()
            await told(self, jobs)

        monkeypatch.setattr(part, "_tell_children_of", tell)


async def test_only_the_dead_are_dead_letters(store: Store, worker: Worker) -> None:
    await store.cancel(await submit(store))
    await submit(store)
    (run,) = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run)])
    assert await store.dead_groups() == []
    assert await store.count_dead() == 0
    assert await store.dead_letters() == Page([])
    assert (await store.get(run.job_id)).fingerprint is None


async def test_quarantined_and_unstorable_jobs_are_dead_letters_too(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(1, "call"))
    for _ in range(3):
        (run,) = await claim(store, worker)
        await store.settle(worker.id, [outcome_of(run, Cause.CRASHED, error=Failure(reason="signal"))])
    await store.submit(some_jobs(1, "call"))
    (run,) = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run, result="no json")])
    groups = await store.dead_groups()
    assert {group.error.reason for group in groups if group.error} == {"quarantined", "unstorable"}
    for job in (await store.dead_letters()).jobs:
        assert job.fingerprint in {group.fingerprint for group in groups}


async def test_filters_narrow_lists_counts_and_groups(backend: Backend, store: Store, worker: Worker) -> None:
    start = backend.clock.now()
    old = await die(store, worker, 2)
    await backend.clock.advance(HOUR / 2)
    other = await die(store, worker, 1, NO_HOST, queue="slow")
    foreign = await die(store, worker, 1, tenant="theirs")
    expected: Sequence[tuple[DeadFilter, list[UUID]]] = [
        (DeadFilter(), [*old, *other, *foreign]),
        (DeadFilter(tenant="theirs"), foreign),
        (DeadFilter(tenant="nobody"), []),
        (DeadFilter(queue="slow"), other),
        (DeadFilter(kind="mail"), []),
        (DeadFilter(fingerprint=fingerprint_of(NO_ANSWER)), [*old, *foreign]),
        (DeadFilter(died_from=start + SECOND), [*other, *foreign]),
        (DeadFilter(died_before=start + SECOND), old),
        (DeadFilter(died_from=start, died_before=start + SECOND, tenant="default", kind="call"), old),
    ]
    for where, ids in expected:
        assert [job.id for job in (await store.dead_letters(where)).jobs] == sorted(ids, reverse=True), where
        assert await store.count_dead(where) == len(ids), where
        assert sum(group.jobs for group in await store.dead_groups(where)) == len(ids), where


async def test_lists_go_on_page_by_page(store: Store, worker: Worker) -> None:
    ids = await die(store, worker, 7)
    first = await store.dead_letters(limit=4)
    rest = await store.dead_letters(limit=4, after=first.next)
    assert [job.id for job in [*first.jobs, *rest.jobs]] == ids[::-1]
    assert (len(rest.jobs), rest.next) == (3, None)


async def test_a_redrive_by_query_sends_what_fits_and_nothing_else(store: Store, worker: Worker) -> None:
    wanted, other = await die(store, worker, 5), await die(store, worker, 2, NO_HOST)
    where = DeadFilter(fingerprint=fingerprint_of(NO_ANSWER))
    assert await store.count_dead(where) == 5
    assert await redrive_all(store, where, limit=2) == wanted
    assert {await state_of(store, job_id) for job_id in wanted} == {State.QUEUED}
    assert {await state_of(store, job_id) for job_id in other} == {State.DEAD}
    assert await store.count_dead(where) == 0
    assert await redrive_all(store, where) == []


async def test_a_redrive_is_spread_at_the_rate_that_was_asked_for(
    backend: Backend, store: Store, worker: Worker
) -> None:
    ids = await die(store, worker, 10, start_by=backend.clock.now() + 2 * SECOND)
    first = await store.redrive_dead(DeadFilter(), rate=2, limit=6)
    second = await store.redrive_dead(DeadFilter(), rate=2, limit=6, start=3 * SECOND, after=first.next)
    assert first.as_of == backend.clock.now()
    assert (first.jobs, second.jobs, second.next) == (ids[:6], ids[6:], None)
    now = backend.clock.now()
    jobs = [await store.get(job_id) for job_id in ids]
    assert [job.run_at - now for job in jobs] == [place * SECOND / 2 for place in range(10)]
    assert [job.start_by is not None for job in jobs] == [True] * 4 + [False] * 6, (
        "a deadline that would pass is removed"
    )
    assert len(await claim(store, worker, 20)) == 1
    await backend.clock.advance(SECOND)
    assert len(await claim(store, worker, 20)) == 2


async def test_two_redrives_of_the_same_query_send_each_job_once(
    backend: Backend, store: Store, worker: Worker
) -> None:
    ids = await die(store, worker, 100)
    stores = [store, *[await backend.open() for _ in range(3)]]
    sent = await asyncio.gather(*(redrive_all(one, DeadFilter(), limit=7) for one in stores))
    assert sorted(job_id for piece in sent for job_id in piece) == ids
    runs = await claim(store, worker, 200)
    assert sorted(run.job_id for run in runs) == ids


async def test_what_dies_again_meanwhile_is_not_sent_round_for_ever(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await die(store, worker, 3)
    await backend.clock.advance(SECOND)
    piece = await store.redrive_dead(DeadFilter())
    where = DeadFilter(died_before=piece.as_of)
    runs = await claim(store, worker, 10)
    await store.settle(worker.id, [outcome_of(run, Cause.GAVE_UP, error=NO_ANSWER) for run in runs])
    assert await redrive_all(store, where) == []


@pytest.mark.native("a server goes on with what died before it began, and here time stands still")
async def test_those_whose_unique_key_is_taken_are_passed_over(store: Store, worker: Worker) -> None:
    (held,) = await die(store, worker, unique_key="u")
    ids = await die(store, worker, 3)
    await submit(store, unique_key="u")
    assert await redrive_all(store, DeadFilter(), limit=1) == ids
    assert await state_of(store, held) is State.DEAD


async def test_a_job_goes_round_with_other_arguments(store: Store, worker: Worker) -> None:
    (job_id,) = await die(store, worker, args={"order": 1})
    job = await store.redrive_edited(job_id, {"order": 2})
    assert (job.state, job.args, job.failures) == (State.QUEUED, {"order": 2}, 0)
    (run,) = await claim(store, worker)
    assert run.args == '{"order":2}'
    assert len(await store.attempts(job_id)) == 1


@pytest.mark.parametrize("args", [[1], "text", None, {"a": float("nan")}, {"a": "x" * 300_000}, {1: 2}])
async def test_other_arguments_are_checked_as_at_a_submit(store: Store, worker: Worker, args: Any) -> None:
    (job_id,) = await die(store, worker, args={"order": 1})
    with pytest.raises(Invalid) as caught:
        await store.redrive_edited(job_id, args)
    assert caught.value.field == "args"
    assert (await store.get(job_id)).args == {"order": 1}


async def test_other_arguments_may_ask_for_results_of_parents_alone(store: Store, worker: Worker) -> None:
    parent = await submit(store, kind="call")
    (run,) = await claim(store, worker)
    await store.settle(worker.id, [outcome_of(run)])
    (job_id,) = await die(store, worker, after=(parent,))
    with pytest.raises(Invalid, match="not in after"):
        await store.redrive_edited(job_id, {"x": {"$result_of": str(uuid4())}})
    job = await store.redrive_edited(job_id, {"x": {"$result_of": str(parent)}})
    assert job.args == {"x": {"$result_of": str(parent)}}


async def test_only_dead_letters_are_edited(store: Store, worker: Worker) -> None:
    queued = await submit(store)
    cancelled = await submit(store)
    await store.cancel(cancelled)
    for job_id in (queued, cancelled):
        with pytest.raises(Conflict, match=str(await state_of(store, job_id))):
            await store.redrive_edited(job_id, {"a": 1})
    with pytest.raises(NotFound):
        await store.redrive_edited(uuid4(), {"a": 1})
    (dead,) = await die(store, worker, tenant="theirs", kind="call")
    with pytest.raises(NotFound):
        await store.redrive_edited(dead, {"a": 1}, tenant="mine")


async def test_an_edit_that_cannot_go_round_changes_nothing(store: Store, worker: Worker) -> None:
    (job_id,) = await die(store, worker, unique_key="u", args={"a": 1})
    await submit(store, unique_key="u")
    with pytest.raises(Conflict, match="unique key"):
        await store.redrive_edited(job_id, {"a": 2})
    assert ((await store.get(job_id)).state, (await store.get(job_id)).args) == (State.DEAD, {"a": 1})


async def test_an_edit_and_a_redrive_at_once_send_the_job_once(backend: Backend, store: Store, worker: Worker) -> None:
    (job_id,) = await die(store, worker, args={"a": 1})
    other = await backend.open()
    answers = await asyncio.gather(
        store.redrive_edited(job_id, {"a": 2}), other.redrive_dead(DeadFilter()), return_exceptions=True
    )
    assert len(await claim(store, worker, 10)) == 1
    edited = not isinstance(answers[0], BaseException)
    assert (await store.get(job_id)).args == ({"a": 2} if edited else {"a": 1})


async def test_retired_dead_letters_are_in_no_group(backend: Backend, store: Store, worker: Worker) -> None:
    await die(store, worker, 2)
    for _ in range(5):
        await backend.clock.advance(DAY)
        await store.prepare_days()
    await store.retire({state: DAY for state in State if state.value in ("dead", "cancelled")})
    assert await store.dead_groups() == []


@pytest.mark.parametrize(
    ("where", "field"),
    [
        (DeadFilter(kind="two words"), "kind"),
        (DeadFilter(queue=""), "queue"),
        (DeadFilter(tenant="\0"), "tenant"),
        (DeadFilter(fingerprint="nonsense"), "fingerprint"),
        (DeadFilter(died_from=datetime(2030, 1, 1)), "died_from"),  # noqa: DTZ001 - that is what is wrong with it
        (DeadFilter(died_before="yesterday"), "died_before"),  # type: ignore[arg-type]
    ],
)
async def test_filters_that_make_no_sense_are_refused(store: Store, where: DeadFilter, field: str) -> None:
    for ask in (store.dead_groups, store.dead_letters, store.count_dead, store.redrive_dead):
        with pytest.raises(Invalid) as caught:
            await ask(where)
        assert caught.value.field == field


async def test_a_span_that_ends_before_it_begins_is_refused(backend: Backend, store: Store) -> None:
    now = backend.clock.now()
    with pytest.raises(Invalid, match="died_before"):
        await store.count_dead(DeadFilter(died_from=now, died_before=now))


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), 1e9, True, "fast", 1e-9])
async def test_rates_that_make_no_sense_are_refused(store: Store, rate: Any) -> None:
    with pytest.raises(Invalid) as caught:
        await store.redrive_dead(DeadFilter(), rate=rate)
    assert caught.value.field == "rate"


async def test_pieces_that_make_no_sense_are_refused(store: Store) -> None:
    for limit in (0, -1, 1001):
        with pytest.raises(Invalid, match="limit"):
            await store.redrive_dead(DeadFilter(), limit=limit)
    with pytest.raises(Invalid, match="start"):
        await store.redrive_dead(DeadFilter(), start=timedelta(seconds=-1))
    with pytest.raises(Invalid, match="year"):
        await store.redrive_dead(DeadFilter(), rate=0.001, start=364 * DAY + 23 * HOUR)
    with pytest.raises(Invalid, match="limit"):
        await store.dead_groups(limit=0)

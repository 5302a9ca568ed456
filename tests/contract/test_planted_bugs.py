"""The judge of the real faults turns red for every store and lease that is broken on purpose, and for no sound one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
import pytest

from harness.checker import check, require
from tests.contract.backends import Backend
from tests.contract.play import Play, perform
from tidewheel.errors import Unavailable
from tidewheel.model import liveness
from tidewheel.model.job import Job, JobSpec, Submitted
from tidewheel.model.outcome import Outcome, Verdict
from tidewheel.model.states import Cause, State
from tidewheel.store.base import Store

Edit = tuple[str, str, str]
"""A statement, what it says, and what it says instead."""


class Planted(NamedTuple):
    """A bug, and the rules of which at least one must find it."""

    rules: set[str]
    sqlite: Sequence[Edit] = ()
    postgres: Sequence[Edit] = ()
    patch: Callable[[pytest.MonkeyPatch, Store], None] | None = None


def _replace(monkeypatch: pytest.MonkeyPatch, store: Store, method: str, broken: Callable[..., Any]) -> None:
    sound = getattr(store, method)

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await broken(sound, store, *args, **kwargs)

    monkeypatch.setattr(store, method, call)


# Broken methods: each is given the sound one, the store, and what the caller gave


async def _told_before_it_is_stored(sound: Any, _: Store, specs: Sequence[JobSpec]) -> list[Submitted]:
    try:
        answers: list[Submitted] = await sound(specs)
    except Unavailable:
        return [Submitted(uuid4(), created=True) for _ in specs]
    return answers


async def _one_by_one(sound: Any, _: Store, specs: Sequence[JobSpec]) -> list[Submitted]:
    return [answer for spec in specs for answer in await sound([spec])]


async def _whoever_runs_it(sound: Any, store: Store, worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
    """Settle by the job alone, as if there were neither tokens nor workers."""
    verdicts: list[Verdict] = []
    for outcome in outcomes:
        job = await store.get(outcome.job_id)
        now = msgspec.structs.replace(outcome, token=job.token)
        verdicts += await sound(job.last_worker or worker_id, [now])
    return verdicts


async def _all_is_well(sound: Any, _: Store, worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
    well = [
        Outcome(outcome.job_id, outcome.token, Cause.RETURNED) if outcome.cause is Cause.GAVE_UP else outcome
        for outcome in outcomes
    ]
    verdicts: list[Verdict] = await sound(worker_id, well)
    return verdicts


async def _over_at_once(sound: Any, _: Store, job_id: UUID) -> Job:
    job: Job = await sound(job_id)
    return msgspec.structs.replace(job, state=State.CANCELLED, cancelling=False) if job.cancelling else job


# Broken decisions about leases


def _trusts_its_lease_too_long(monkeypatch: pytest.MonkeyPatch, _: Store) -> None:
    monkeypatch.setattr(liveness, "holder_deadline", lambda sent_at, ttl: sent_at + 3 * ttl.total_seconds())


def _dead_is_who_seems_so(monkeypatch: pytest.MonkeyPatch, _: Store) -> None:
    monkeypatch.setattr(liveness, "observe", lambda _watched, expired, _now: (list(expired), {}))


def _calls(method: str, broken: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch, Store], None]:
    return lambda monkeypatch, store: _replace(monkeypatch, store, method, broken)


PLANTED: dict[str, Planted] = {
    "workers are rescued from by their age": Planted(
        {"CONCURRENT"},
        sqlite=[
            ("expired_workers", "lease_until <= :now", "registered_at <= :now - 8000000"),
            ("end_worker", "AND lease_until <= :now", ""),
        ],
        postgres=[
            (
                "expired_workers",
                "lease_until <= tidewheel.now()",
                "registered_at <= tidewheel.now() - interval '8 s'",
            ),
            ("end_worker", "AND lease_until <= tidewheel.now()", ""),
        ],
        patch=_dead_is_who_seems_so,
    ),
    "the holder trusts its lease longer than the store does": Planted({"CONCURRENT"}, patch=_trusts_its_lease_too_long),
    "what a dead worker had is not given back": Planted(
        {"STUCK"},
        sqlite=[("runs_of_worker", "AND worker = :worker", "AND worker = :worker AND false")],
        postgres=[("lock_runs_of_worker", "AND worker = $1", "AND worker = $1 AND false")],
    ),
    "a worker that was reaped may claim": Planted(
        {"STUCK"},
        sqlite=[("worker_is_alive", "AND alive AND lease_until > :now", "")],
        postgres=[
            ("peek", "AND worker.alive AND worker.lease_until > tidewheel.now()", ""),
            ("take", "AND worker.alive AND worker.lease_until > tidewheel.now()", ""),
            ("take_all", "AND worker.alive AND worker.lease_until > tidewheel.now()", ""),
        ],
    ),
    "what was lost counts as cancelled": Planted(
        {"CANCELLED_UNASKED"},
        sqlite=[("runs_of_worker", "cancel_at IS NOT NULL", "1")],
        postgres=[("lock_runs_of_worker", "cancel_at IS NOT NULL", "true")],
    ),
    "results are taken from whoever sends one": Planted({"WRONG_WINNER"}, patch=_calls("settle", _whoever_runs_it)),
    "tokens are used again": Planted(
        {"TOKEN_REUSED"},
        sqlite=[("take", "token = token + 1", "token = 1")],
        postgres=[("take", "token = token + 1", "token = 1"), ("take_all", "token = token + 1", "token = 1")],
    ),
    "a delay is forgotten": Planted(
        {"EARLY"},
        sqlite=[("add_jobs", "max(coalesce(value ->> 7, :now), :now)", ":now")],
        postgres=[("add_jobs", "greatest(spec.due_at, tidewheel.now())", "tidewheel.now()")],
    ),
    "keys are not looked up": Planted(
        {"DEDUP"},
        sqlite=[("find_key", "AND key = :key", "AND key = :key AND false"), ("add_key", "INSERT", "INSERT OR REPLACE")],
        postgres=[
            ("find_keys", "AND asked.key = idempotency.key", "AND asked.key = idempotency.key AND false"),
            ("add_keys", "DO NOTHING", "DO UPDATE SET job_id = excluded.job_id"),
        ],
    ),
    "a submit is answered before it is stored": Planted(
        {"LOST_ROW"}, patch=_calls("submit", _told_before_it_is_stored)
    ),
    "a batch is stored one by one": Planted({"CONSERVATION"}, patch=_calls("submit", _one_by_one)),
    "limits are not looked at": Planted(
        {"LIMIT"},
        sqlite=[("standings", "limit_key.most,", "1000,"), ("standings_and_waiters", "limit_key.most,", "1000,")],
        postgres=[("lock_limits", "limit_key.most,", "1000,")],
    ),
    "children do not wait": Planted(
        {"DAG"},
        sqlite=[
            ("add_jobs", "iif(value ->> 13 > 0, 'blocked', 'queued')", "'queued'"),
            ("add_jobs", "coalesce(value ->> 13, 0)", "0"),
        ],
        postgres=[
            ("add_jobs", "CASE WHEN spec.waits > 0 THEN 'blocked' ELSE 'queued' END", "'queued'"),
            ("add_jobs", "coalesce(spec.waits, 0)", "0"),
        ],
    ),
    "failures count twice": Planted(
        {"ATTEMPTS"},
        sqlite=[("give_back", "job.failures + back.failures", "job.failures + 2 * back.failures")],
        postgres=[("give_back", "job.failures + back.failures", "job.failures + 2 * back.failures")],
    ),
    "what gave up is called a success": Planted({"FALSE_SUCCESS"}, patch=_calls("settle", _all_is_well)),
    "a job that was asked to stop is tried again": Planted(
        {"START_AFTER_CANCEL"},
        sqlite=[("runs_named", "job.cancel_at IS NOT NULL", "0")],
        postgres=[("lock_runs", "job.cancel_at IS NOT NULL AS", "false AS")],
    ),
    "nobody hears that a job should stop": Planted(
        {"RAN_ON"},
        sqlite=[("cancelling", "AND cancel_at IS NOT NULL", "AND false")],
        postgres=[("beat", "AND cancel_at IS NOT NULL", "AND false")],
    ),
    "a running job is called cancelled at once": Planted({"RAN_ON"}, patch=_calls("cancel", _over_at_once)),
    "a cancel is taken and forgotten": Planted(
        {"CANCEL_IGNORED"},
        sqlite=[("ask_to_stop", "AND +state = 'running'", "AND false")],
        postgres=[("ask_to_stop", "AND state || '' = 'running'", "AND false")],
    ),
}


def plant(monkeypatch: pytest.MonkeyPatch, backend: Backend, bug: Planted) -> None:
    """Change the statements; one that no longer says what is to be changed is an error of this test."""
    if backend.name == "sqlite":
        from tidewheel.store.sqlite.connection import SQL  # noqa: PLC0415 - as the stores themselves
    else:
        from tidewheel.store.postgres.connection import SQL  # noqa: PLC0415
    for name, old, new in getattr(bug, backend.name):
        assert old in SQL[name], f"{name} no longer says {old!r}"
        monkeypatch.setitem(SQL, name, SQL[name].replace(old, new))


@pytest.mark.parametrize("name", PLANTED)
async def test_a_planted_bug_is_found(name: str, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = PLANTED[name]
    plant(monkeypatch, backend, bug)
    store = await backend.open()
    if bug.patch is not None:
        bug.patch(monkeypatch, store)

    violations = check(await perform(Play(backend, store)))

    assert bug.rules & {violation.rule for violation in violations}, violations


async def test_a_sound_store_is_found_sound(backend: Backend) -> None:
    history = await perform(Play(backend, await backend.open()))

    assert check(history) == []
    require(history, executions=16, deaths=1, reclaims=1, stale=1, cancelled=3, succeeded=12)

"""Bad input is refused with one error that names the field and the reason, and nothing is stored.

Kinds are not known to a store, and cron lines, time zones and windows belong to schedules; those are refused elsewhere.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.builders import HOUR, a_claim, a_job, needing, some_jobs
from tests.contract.steps import claim, everything
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.job import Options
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

AT = datetime(2030, 6, 1, tzinfo=UTC)
Question = Callable[[], Awaitable[Any]]
NAMES = ["", "x" * 201, "x" * 300, "nul\0", "half \ud800", "tab\there", " blank", "ne\u0301", 7, None]


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


BAD_FIELDS: list[tuple[str, Any, str]] = [
    *[(field, name, field) for field in ("kind", "queue", "tenant") for name in NAMES],
    *[(field, key, field) for field in ("idempotency_key", "unique_key") for key in ("", "x" * 300, "nul\0", "\ud800")],
    ("limit_keys", ("",), "limit_keys"),
    ("limit_keys", ("a", "a"), "limit_keys"),
    ("limit_keys", ("nul\0",), "limit_keys"),
    ("limit_keys", ("\x1f",), "limit_keys"),
    ("limit_keys", ("x" * 300,), "limit_keys"),
    ("limit_keys", tuple(map(str, range(9))), "limit_keys"),
    ("args", {"big": "x" * (256 * 1024)}, "args"),
    ("args", {"deep": _nested(64)}, "args"),
    ("args", {"deep": _nested(100_000)}, "args"),
    ("args", {"n": float("nan")}, "args"),
    ("args", {"n": float("inf")}, "args"),
    ("args", {"n": 2**64}, "args"),
    ("args", {"n": 10**5000}, "args"),
    ("args", {"t": "nul\0"}, "args"),
    ("args", {"nul\0": 1}, "args"),
    ("args", {"t": "\udfff"}, "args"),
    ("args", {1: "number as a key"}, "args"),
    ("args", {"b": b"bytes"}, "args"),
    ("args", {"d": AT}, "args"),
    ("args", {"o": object()}, "args"),
    ("args", [1, 2], "args"),
    ("args", "text", "args"),
    ("labels", {"": "x"}, "labels"),
    ("labels", {"a": 1}, "labels"),
    ("labels", {"a": "nul\0"}, "labels"),
    ("labels", {f"l{i}": "x" for i in range(33)}, "labels"),
    ("priority", 3, "priority"),
    ("priority", -1, "priority"),
    ("priority", "urgent", "priority"),
    ("priority", None, "priority"),
    ("delay", timedelta(seconds=-1), "delay"),
    ("delay", timedelta(days=4000), "delay"),
    ("run_at", AT.replace(tzinfo=None), "run_at"),
    ("run_at", datetime(1999, 1, 1, tzinfo=UTC), "run_at"),
    ("run_at", datetime(2300, 1, 1, tzinfo=UTC), "run_at"),
    ("start_by", AT.replace(tzinfo=None), "start_by"),
    ("unique", "perhaps", "unique"),
    ("needs", needing({"cpu": -1}), "needs.resources"),
    ("needs", needing({"cpu": 2**63}), "needs.resources"),
    ("needs", needing({"nul\0": 1}), "needs.resources"),
    ("needs", needing(zone="nul\0"), "needs.labels"),
    ("options", Options(name=""), "name"),
    ("options", Options(name="x" * 300), "name"),
    ("options", Options(description="nul\0"), "description"),
    ("options", Options(timeout=timedelta(0)), "timeout"),
    ("options", Options(timeout=timedelta(days=30)), "timeout"),
    ("options", Options(retry=RetryPolicy(max_attempts=0)), "retry.max_attempts"),
    ("options", Options(retry=RetryPolicy(delay=-HOUR)), "retry.delay"),
]


BAD_IDS = [f"{field}-{number}" for number, (field, _, _) in enumerate(BAD_FIELDS)]


@pytest.mark.parametrize(("field", "value", "named"), BAD_FIELDS, ids=BAD_IDS)
async def test_a_bad_field_is_refused_by_its_name(store: Store, field: str, value: Any, named: str) -> None:
    fields = {"kind": "echo", field: value}
    spec = a_job(**fields)
    with pytest.raises(Invalid) as refusal:
        await store.submit([spec])
    assert refusal.value.field == named
    assert refusal.value.why
    assert str(refusal.value).encode(), "the refusal itself can be shown"
    with pytest.raises(Invalid) as refusal:
        await store.submit([*some_jobs(2), spec])
    assert refusal.value.field == f"specs[2].{named}"
    assert await everything(store) == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"run_at": AT, "delay": HOUR}, "delay"),
        ({"run_at": AT, "start_by": AT - HOUR}, "start_by"),
    ],
)
async def test_fields_that_contradict_each_other_are_refused(store: Store, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.submit([a_job(**fields)])
    assert refusal.value.field == named
    assert await everything(store) == []


GOOD_FIELDS: list[dict[str, Any]] = [
    {"kind": "x" * 200, "queue": "q" * 200, "tenant": "t" * 200},
    {"kind": "größe/日本:@-_."},
    {"args": {"big": "x" * (256 * 1024 - 10)}},
    {"args": {"deep": _nested(63)}},
    {"args": {"n": [2**63, -(2**63), 1e308, 0.1, True, None, ""]}},
    {"args": {"'; DROP TABLE job; --": "%_\\\"'"}},
    {"labels": {f"l{i}": "x" * 200 for i in range(32)}},
    {"limit_keys": tuple(f"key {i} of, {{this}} \"'\\" for i in range(8))},
    {"idempotency_key": "k" * 200, "unique_key": "ключ 'x' {}"},
    {"delay": timedelta(days=3650)},
    {"options": Options(description="😀" * 10_000)},
]


@pytest.mark.parametrize("fields", GOOD_FIELDS, ids=["-".join(fields) for fields in GOOD_FIELDS])
async def test_what_is_just_good_enough_comes_back_unchanged(store: Store, fields: dict[str, Any]) -> None:
    (answer,) = await store.submit([a_job(**{"kind": "echo", **fields})])
    job = await store.get(answer.job_id)
    fields.pop("delay", None)
    options = fields.pop("options", Options())
    assert {name: getattr(job, name) for name in fields} == fields
    assert job.description == options.description


async def test_whatever_is_claimed_comes_unchanged(store: Store, worker: Worker) -> None:
    text = "'; DROP TABLE job; -- % \\ \" { } \u2028 😀"
    await store.submit([a_job(args={"t": text}, labels={"x": "ü"})])
    (run,) = await claim(store, worker)
    import json  # noqa: PLC0415

    assert (json.loads(run.args), json.loads(run.labels or "")) == ({"t": text}, {"x": "ü"})


async def test_a_reason_that_cannot_be_stored_is_refused(store: Store) -> None:
    (answer,) = await store.submit(some_jobs(1))
    for reason in ("nul\0", "half \ud800"):
        with pytest.raises(Invalid) as refusal:
            await store.cancel(answer.job_id, reason=reason)
        assert refusal.value.field == "reason"
    assert [job.state for job in await everything(store)] == ["queued"]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_claim_of_nothing_takes_nothing(store: Store, worker: Worker, limit: int) -> None:
    await store.submit(some_jobs(3))
    try:
        got = (await store.claim(a_claim(worker.id, limit))).runs
    except Invalid as refusal:
        assert refusal.field == "limit"  # noqa: PT017
        got = []
    assert got == []
    assert len(await claim(store, worker)) == 3


@pytest.mark.parametrize("name", ["nul\0", "half \ud800"])
async def test_names_that_no_store_can_hold_are_not_found_or_refused(store: Store, worker: Worker, name: str) -> None:
    """A reader may ask for anything, and the store does not stumble."""
    (answer,) = await store.submit(some_jobs(1))
    questions: list[Question] = [
        lambda: claim(store, worker, queues=(name,)),
        lambda: claim(store, worker, kinds=frozenset({name})),
        lambda: store.redrive([answer.job_id], tenant=name),
        lambda: everything(store, JobFilter(tenant=name)),
        lambda: everything(store, JobFilter(kind=name)),
        lambda: everything(store, JobFilter(label=(name, name))),
        lambda: store.limits(tenant=name),
    ]
    for ask in questions:
        with suppress(Invalid, NotFound):
            assert await ask() == []
    for look in (store.get, store.attempts, store.cancel):
        with pytest.raises((Invalid, NotFound)):
            await look(answer.job_id, tenant=name)

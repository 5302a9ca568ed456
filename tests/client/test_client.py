"""The client does what its methods say, and nothing twice."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import httpx
import pytest

from tests.api.conftest import CLOCK, Api
from tests.api.test_entrance import key_of
from tests.builders import a_claim, a_job, a_worker, outcome_of
from tests.client.relay import Relay
from tidewheel.client import AsyncClient, Client, NewJob
from tidewheel.errors import (
    AlreadyActive,
    Conflict,
    Forbidden,
    Invalid,
    JobCancelled,
    JobFailed,
    KeyReused,
    NotFound,
    OutcomeUnknown,
    QueueFull,
    TooMany,
    Unauthenticated,
    Unavailable,
)
from tidewheel.model.access import Role
from tidewheel.model.cap import QueueCap
from tidewheel.model.job import Run
from tidewheel.model.log import LogLine
from tidewheel.model.priority import Priority
from tidewheel.model.rate import Pace
from tidewheel.model.states import Cause, State
from tidewheel.store.base import JobFilter
from tidewheel.store.remote import open_store

T = TypeVar("T")
NEW = a_job("mail")
EVERYTHING = JobFilter()


async def all_of(items: AsyncIterator[T]) -> list[T]:
    return [item async for item in items]


async def test_jobs_are_submitted_looked_at_listed_and_steered(api: Api, client: AsyncClient) -> None:
    made = await client.submit(
        "mail",
        {"to": "a"},
        priority="high",
        delay=timedelta(hours=1),
        labels={"team": "web"},
        retry={"max_attempts": 7},
    )
    many = await client.submit_many([NewJob("mail", {"n": n}, {"queue": "bulk"}) for n in range(450)])

    job = await client.get(made.job_id)
    assert (job.priority, job.args, job.labels, job.retry.max_attempts) == (
        Priority.HIGH,
        {"to": "a"},
        {"team": "web"},
        7,
    )
    assert job.due_at - job.created_at >= timedelta(minutes=59)
    listed = await all_of(client.jobs(queue="bulk", state="queued"))
    assert [one.id for one in listed] == [one.job_id for one in reversed(many)]
    assert (await client.cancel(made.job_id, "not wanted")).state is State.CANCELLED
    assert (await client.retry(made.job_id)).state is State.QUEUED
    with pytest.raises(Conflict):
        await client.retry(made.job_id)
    assert {queue.queue for queue in await client.queues()} <= {"default", "bulk"}
    assert await client.workers() == []
    await api.store.register(a_worker())
    assert [worker.name for worker in await client.workers(alive=True)] == [a_worker().name]


async def test_results_are_waited_for_and_failures_raised(api: Api, client: AsyncClient) -> None:
    good = await client.submit("mail")
    waiting = asyncio.create_task(client.result(good.job_id, wait=60))
    await api.run(result='{"sent":1}')
    assert await waiting == {"sent": 1}
    bad = await client.submit("mail")
    await api.run(Cause.GAVE_UP)
    with pytest.raises(JobFailed, match="it broke"):
        await client.result(bad.job_id)
    gone = await client.submit("mail")
    with pytest.raises(TimeoutError):
        await client.result(gone.job_id)
    await client.cancel(gone.job_id)
    with pytest.raises(JobCancelled):
        await client.result(gone.job_id, wait=5)
    assert [attempt.cause for attempt in await client.attempts(bad.job_id)] == ["gave_up"]


async def test_errors_are_those_of_the_program(api: Api, client: AsyncClient) -> None:
    with pytest.raises(NotFound):
        await client.get(uuid4())
    with pytest.raises(Invalid) as invalid:
        await client.submit("no spaces")
    assert invalid.value.field == "kind"
    with pytest.raises(Invalid) as invalid:
        await client.submit_many([NewJob("a"), NewJob("a", {}, {"queue": "no spaces"})])
    assert invalid.value.field == "specs[1].queue"
    with pytest.raises(Invalid, match="args"):
        await client.submit("a", {"x": object()})
    first = await client.submit("a", idempotency_key="k", unique_key="u")
    with pytest.raises(KeyReused):
        await client.submit("b", idempotency_key="k")
    with pytest.raises(AlreadyActive) as active:
        await client.submit("a", unique_key="u")
    assert (active.value.job_id, active.value.key) == (first.job_id, "u")
    viewer, _ = await key_of(api, Role.VIEWER)
    async with AsyncClient(api.address.url, key=viewer["authorization"].removeprefix("Bearer ")) as other:
        with pytest.raises(Forbidden):
            await other.submit("a")
        assert (await other.get(first.job_id)).id == first.job_id
    async with AsyncClient(api.address.url, key="tide_nonsense") as other:
        with pytest.raises(Unauthenticated):
            await other.gates()


async def test_gates_and_limits_are_set_and_removed(client: AsyncClient) -> None:
    gate = await client.close_gate("hold", kind="mail", reason="down", lasts="1h")
    assert await client.gates() == [gate]
    await client.open_gate(gate.id)
    with pytest.raises(NotFound):
        await client.open_gate(gate.id)
    limit = await client.set_limit("host:a/b", 3, rate="10/m", burst=2)
    assert (limit.most, limit.rate) == (3, Pace(10, 60, 2))
    assert await client.limits() == [limit]
    await client.remove_limit("host:a/b")
    assert await client.limits() == []


async def test_caps_and_rules_are_set_kept_and_removed(client: AsyncClient) -> None:
    cap = await client.set_cap("mail/slow", 1)
    assert (cap, await client.caps()) == (QueueCap("default", "mail/slow", 1), [cap])
    await client.submit("mail", queue="mail/slow")
    with pytest.raises(QueueFull, match="queue 'mail/slow' is full: at most 1 jobs may wait in it") as refusal:
        await client.submit("mail", queue="mail/slow")
    assert (refusal.value.queue, refusal.value.key, refusal.value.most) == ("mail/slow", None, 1)
    await client.remove_cap("mail/slow")
    rules = [await client.set_key_cap("cap:mail", 3, overflow="replace"), await client.set_rule("host", rate="1/s")]
    assert await client.rules() == rules
    for rule in rules:
        await client.remove_rule(rule.name)
        with pytest.raises(NotFound):
            await client.remove_rule(rule.name)
    assert (await client.caps(), await client.rules()) == ([], [])


async def test_a_submit_whose_answer_was_lost_is_sent_again_and_makes_one_job(api: Api) -> None:
    async with Relay(api.address) as relay, AsyncClient(relay.url) as client:
        relay.cut_answers = 2
        made = await client.submit("mail")
        many = await client.submit_many([NewJob("mail"), NewJob("mail")])

        assert relay.requests == 4
        assert {job.id for job in await all_of(client.jobs())} == {made.job_id, *(one.job_id for one in many)}
        relay.cut_answers = 3
        with pytest.raises(OutcomeUnknown):
            await client.submit("mail")


async def test_a_store_behind_a_server_says_when_the_outcome_is_unknown(api: Api) -> None:
    async with Relay(api.address) as relay:
        store = await open_store(relay.url)
        worker = await store.register(a_worker())
        [made] = await store.submit([NEW])
        relay.cut_answers = 1
        with pytest.raises(OutcomeUnknown):
            await store.claim(a_claim(worker.id))
        [run] = await store.owned(worker.id)
        assert run.job_id == made.job_id
        relay.cut_answers = 1
        assert await store.settle(worker.id, [outcome_of(run)]) == ["repeated"]
        relay.cut_answers = 1
        with pytest.raises(OutcomeUnknown):
            await store.submit([NEW])
        assert len((await store.find(EVERYTHING)).jobs) == 2
        await store.close()
        with pytest.raises(Unavailable):
            await store.gates()


class Asleep:
    """A clock that only writes down how long someone would have slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def busy(patch: pytest.MonkeyPatch, told: Sequence[int], after: int) -> tuple[AsyncClient, Asleep]:
    """Return a client of a server that answers so, one after the other, and names a time."""
    statuses, clock = iter(told), Asleep()

    async def answer(request: httpx.Request) -> httpx.Response:
        status = next(statuses)
        code = "too-many" if status == 429 else "unavailable"
        content: dict[str, Any] = {"gates": []} if status == 200 else {"code": code, "detail": "later"}
        return httpx.Response(status, json=content, headers={"retry-after": str(after)}, request=request)

    client = AsyncClient("http://127.0.0.1:1", clock=clock)  # type: ignore[arg-type]
    patch.setattr(client._transport.client, "send", answer)
    return client, clock


@pytest.mark.parametrize("after", [3, 25])
async def test_a_server_that_is_busy_is_asked_again_after_the_time_it_names(
    monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    client, clock = busy(monkeypatch, [429, 503, 200], after)
    assert await client.gates() == []
    assert clock.slept == [after, after]
    await client.close()


async def test_nobody_waits_longer_than_they_would_and_asks_too_early_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    client, clock = busy(monkeypatch, [429, 429, 503], 40)
    with pytest.raises(TooMany) as told:
        await client.gates()
    assert (clock.slept, told.value.retry_after) == ([40], 40)
    with pytest.raises(Unavailable):
        await client.result(uuid4(), wait=30)
    assert clock.slept == [40]
    await client.close()


async def test_a_job_is_followed_over_an_interruption_and_every_line_comes_once(api: Api) -> None:
    async with Relay(api.address) as relay, AsyncClient(relay.url) as client:
        made = await client.submit("mail")
        events = client.events(made.job_id)
        worker = await api.store.register(a_worker())
        [run] = (await api.store.claim(a_claim(worker.id))).runs
        await api.store.append_logs([a_line(run, 0, "one")])
        while (await anext(events)).name != "log":
            pass
        relay.cut()
        await api.store.append_logs([a_line(run, 1, "two")])
        await api.store.settle(worker.id, [outcome_of(run)])
        rest = await all_of(events)

    assert [event.data["text"] for event in rest if event.name == "log"] == ["two"]
    assert [event.name for event in rest][-1] == "end"


def a_line(run: Run, number: int, text: str) -> LogLine:
    return LogLine(run.job_id, run.token, number, CLOCK.now(), "stdout", None, text)


async def test_lines_are_read_and_followed(api: Api, client: AsyncClient) -> None:
    made = await client.submit("mail")
    await api.run(lines=["one", "two"])

    for follow in (False, True):
        assert [line.text async for line in client.logs(made.job_id, follow=follow)] == ["one", "two"]


@pytest.mark.parametrize("tenant", ["acme", "a/b:c@d.e-f_g", "Büro-東京"])
async def test_a_key_of_all_tenants_names_the_one_it_works_in(api: Api, tenant: str) -> None:
    async with AsyncClient(api.address.url, tenant=tenant) as client:
        made = await client.submit("mail")
        assert (await client.get(made.job_id)).tenant == tenant
    async with AsyncClient(api.address.url, tenant="*") as client:
        assert [job.tenant async for job in client.jobs()] == [tenant]


async def test_a_tenant_that_cannot_be_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(Invalid, match="tenant"):
        AsyncClient(tenant="a b")


async def test_without_an_event_loop_every_call_waits_for_its_answer(api: Api) -> None:
    def use() -> list[str]:
        with Client(api.address.url) as client:
            made = client.submit("mail", {"n": 1})
            client.submit_many([NewJob("mail"), NewJob("mail")])
            assert client.get(made.job_id).args == {"n": 1}
            assert len(list(client.jobs(kind="mail"))) == 3
            for job in client.jobs():
                assert client.cancel(job.id).state is State.CANCELLED
            gate = client.close_gate("hold")
            assert client.gates() == [gate]
            client.open_gate(gate.id)
            assert client.set_limit("k", 1) in client.limits()
            client.remove_limit("k")
            assert client.set_cap("q", 1) in client.caps()
            client.remove_cap("q")
            assert [client.set_rule("a", 1), client.set_key_cap("cap:b", 1)] == client.rules()
            client.remove_rule("a")
            assert (client.workers(), len(client.attempts(made.job_id))) == ([], 0)
            with pytest.raises(JobCancelled):
                client.result(made.job_id, wait=1)
            assert list(client.logs(made.job_id)) == []
            assert client.retry(made.job_id).state is State.QUEUED
            client.cancel(made.job_id)
            return [event.name for event in client.events(made.job_id)]

    assert await asyncio.to_thread(use) == ["state", "end"]


async def test_without_an_event_loop_means_that() -> None:
    client = await asyncio.to_thread(Client, "http://127.0.0.1:1")
    with pytest.raises(Conflict, match="AsyncClient"):
        client.gates()
    await asyncio.to_thread(client.close)


def test_both_clients_have_the_same_calls() -> None:
    def calls(kind: type) -> dict[str, list[inspect.Parameter]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(call).parameters.values()) for name, call in found if name[0] != "_"}

    assert calls(Client) == calls(AsyncClient)


async def test_bytes_are_no_text_of_a_secret() -> None:
    async with AsyncClient("http://127.0.0.1:1") as client:
        with pytest.raises(Invalid, match="value: must be text, not bytes"):
            await client.set_secret("db", b"correct horse")  # type: ignore[arg-type]

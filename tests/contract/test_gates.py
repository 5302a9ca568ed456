"""Gates: a flag on lanes that takes effect at the next claim and moves no job."""

from uuid import uuid4

import pytest

from tests.builders import HOUR, SECOND, a_claim, a_job, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, drain, finish, in_order, settle, start, state_of, submit
from tidewheel.errors import Invalid, NotFound, StaleVersion
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.version import gate_version
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

HOLD, DROP = GateMode.HOLD, GateMode.DROP


async def test_a_closed_gate_lets_nothing_through_from_the_next_claim_on(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(10, "closed"))
    other = await submit(store, "open")
    assert len(await claim(store, worker, 2)) == 2
    await store.close_gate(GateSpec(mode=HOLD, kind="closed"))
    assert in_order(await claim(store, worker)) == [other]
    assert await claim(store, worker) == []


async def test_a_gate_takes_effect_in_every_process(backend: Backend, store: Store, worker: Worker) -> None:
    """Also in one that has just claimed from that lane and remembers it as open."""
    other = await backend.open()
    await store.submit(some_jobs(10))
    assert len(await claim(store, worker, 2)) == 2
    gate = await other.close_gate(GateSpec(mode=HOLD, kind="echo"))
    assert await claim(store, worker, 2) == []
    await other.open_gate(gate.id)
    assert len(await claim(store, worker, 2)) == 2


async def test_an_opened_gate_lets_jobs_through_in_their_old_order(
    backend: Backend, store: Store, worker: Worker
) -> None:
    ids = []
    for i in range(12):
        ids.append(await submit(store, f"k{i % 2}"))
        await backend.clock.advance(SECOND)
        if i == 5:
            gate = await store.close_gate(GateSpec(mode=HOLD, queue="default"))
    assert await claim(store, worker) == []
    await store.open_gate(gate.id)
    assert in_order(await drain(store, worker, 5)) == ids


@pytest.mark.parametrize(
    ("gate", "held"),
    [
        (GateSpec(mode=HOLD, kind="k"), {"kqt", "kqT", "kQt", "kQT"}),
        (GateSpec(mode=HOLD, queue="q"), {"kqt", "kqT", "Kqt", "KqT"}),
        (GateSpec(mode=HOLD, tenant="t"), {"kqt", "kQt", "Kqt", "KQt"}),
        (GateSpec(mode=HOLD, kind="k", queue="q"), {"kqt", "kqT"}),
        (GateSpec(mode=HOLD, kind="k", tenant="t"), {"kqt", "kQt"}),
        (GateSpec(mode=HOLD, queue="q", tenant="t"), {"kqt", "Kqt"}),
        (GateSpec(mode=HOLD, kind="k", queue="q", tenant="t"), {"kqt"}),
        (GateSpec(mode=HOLD, kind="none-has-this"), set()),
    ],
)
@pytest.mark.parametrize("when", ["lanes first", "gate first"])
async def test_a_gate_holds_just_what_it_names(
    store: Store, worker: Worker, gate: GateSpec, held: set[str], when: str
) -> None:
    """Whether the lanes were there before the gate or appear behind it later."""
    names = {f"{kind}{queue}{tenant}" for kind in "kK" for queue in "qQ" for tenant in "tT"}
    specs = [a_job(name[0], queue=name[1], tenant=name[2], args={"is": name}) for name in sorted(names)]
    if when == "gate first":
        await store.close_gate(gate)
    ids = [answer.job_id for answer in await store.submit(specs)]
    if when == "lanes first":
        await store.close_gate(gate)
    got = {run.kind + run.queue + run.tenant for run in await claim(store, worker, 100, queues=("q", "Q"))}
    assert got == names - held
    for job in [await store.get(job_id) for job_id in ids]:
        assert job.gate == ("hold" if job.args["is"] in held else "open")
        assert job.state is (State.QUEUED if job.args["is"] in held else State.RUNNING)


async def test_a_lane_is_open_only_when_its_last_gate_is(store: Store, worker: Worker) -> None:
    job_id = await submit(store)
    by_kind = await store.close_gate(GateSpec(mode=HOLD, kind="echo"))
    by_tenant = await store.close_gate(GateSpec(mode=HOLD, tenant="default"))
    await store.open_gate(by_kind.id)
    assert await claim(store, worker) == []
    await store.open_gate(by_tenant.id)
    assert in_order(await claim(store, worker)) == [job_id]


async def test_a_gate_on_just_the_same_replaces_the_older_one(backend: Backend, store: Store) -> None:
    await store.close_gate(GateSpec(mode=HOLD, kind="echo", reason="first"))
    await backend.clock.advance(SECOND)
    second = await store.close_gate(GateSpec(mode=DROP, kind="echo", reason="second", author="ann"))
    assert await store.gates() == [second]
    assert (second.mode, second.kind, second.queue, second.tenant) == (DROP, "echo", None, None)
    assert (second.reason, second.author, second.created_at) == ("second", "ann", backend.clock.now())


async def test_gates_are_listed_oldest_first(backend: Backend, store: Store) -> None:
    made = []
    for kind in ("c", "a", "b"):
        made.append(await store.close_gate(GateSpec(mode=HOLD, kind=kind)))
        await backend.clock.advance(SECOND)
    assert await store.gates() == made


async def test_an_unknown_gate_cannot_be_opened(store: Store) -> None:
    gate = await store.close_gate(GateSpec(mode=HOLD, kind="echo"))
    await store.open_gate(gate.id)
    assert await store.gates() == []
    for gate_id in (gate.id, uuid4()):
        with pytest.raises(NotFound):
            await store.open_gate(gate_id)


async def test_a_gate_must_name_something(store: Store) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.close_gate(GateSpec(mode=HOLD))
    assert refusal.value.field == "gate"
    with pytest.raises(Invalid) as refusal:
        await store.close_gate(GateSpec(mode=HOLD, kind="nul\0"))
    assert refusal.value.field == "kind"
    assert await store.gates() == []


async def test_a_gate_does_not_touch_what_runs(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await store.close_gate(GateSpec(mode=DROP, kind="echo"))
    assert await store.drop_gated() == 0
    assert await settle(store, worker, run) is Verdict.ACCEPTED
    assert await state_of(store, run.job_id) is State.SUCCEEDED


async def test_a_retry_waits_behind_the_gate(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    gate = await store.close_gate(GateSpec(mode=HOLD, kind="echo"))
    await settle(store, worker, run, Cause.FAILED)
    assert await claim(store, worker) == []
    await store.open_gate(gate.id)
    assert in_order(await claim(store, worker)) == [run.job_id]


async def test_a_held_job_can_be_cancelled(store: Store) -> None:
    job_id = await submit(store)
    await store.close_gate(GateSpec(mode=HOLD, kind="echo"))
    assert (await store.cancel(job_id)).state is State.CANCELLED


async def test_nothing_comes_due_behind_a_gate(backend: Backend, store: Store, worker: Worker) -> None:
    """A worker must not wake up over and over for what it may not take."""
    await submit(store, "held", delay=SECOND)
    await submit(store, "free", delay=HOUR)
    await store.close_gate(GateSpec(mode=HOLD, kind="held"))
    assert (await store.claim(a_claim(worker.id))).next_due == backend.clock.now() + HOUR


async def test_jobs_behind_a_drop_gate_are_dropped_in_pieces(backend: Backend, store: Store, worker: Worker) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(25))]
    delayed = await submit(store, delay=HOUR)
    kept = await submit(store, "other")
    await store.close_gate(GateSpec(mode=DROP, kind="echo"))
    assert in_order(await claim(store, worker)) == [kept]
    assert [await store.drop_gated(limit=10) for _ in range(4)] == [10, 10, 6, 0]
    for job_id in (*ids, delayed):
        job = await store.get(job_id)
        assert (job.state, job.finished_at) == (State.DROPPED, backend.clock.now())


async def test_a_hold_gate_drops_nothing(store: Store) -> None:
    await submit(store)
    await store.close_gate(GateSpec(mode=HOLD, kind="echo"))
    assert await store.drop_gated() == 0


async def test_drop_is_stronger_than_hold(store: Store, worker: Worker) -> None:
    first = await submit(store)
    drop = await store.close_gate(GateSpec(mode=DROP, kind="echo"))
    hold = await store.close_gate(GateSpec(mode=HOLD, queue="default"))
    assert (await store.get(first)).gate == "drop"
    assert await store.drop_gated() == 1
    await store.open_gate(drop.id)
    second = await submit(store)
    assert (await store.get(second)).gate == "hold"
    assert (await store.drop_gated(), await claim(store, worker)) == (0, [])
    await store.open_gate(hold.id)
    assert in_order(await claim(store, worker)) == [second]


async def test_limited_jobs_are_dropped_too(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    waiting = await submit(store, limit_keys=("l",))
    assert await claim(store, worker) == []
    await store.close_gate(GateSpec(mode=DROP, kind="echo"))
    assert await store.drop_gated() == 1
    assert await state_of(store, waiting) is State.DROPPED
    await finish(store, worker, [run])


async def test_a_gate_that_has_another_version_stays_closed(store: Store) -> None:
    """One that is closed again on just the same keeps its id."""
    seen = await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="k"))
    now = await store.close_gate(GateSpec(mode=GateMode.DROP, kind="k"))
    assert now.id == seen.id
    with pytest.raises(StaleVersion):
        await store.open_gate(seen.id, version=gate_version(seen))
    assert await store.gates() == [now]
    await store.open_gate(now.id, version=gate_version(now))
    assert await store.gates() == []

"""A job whose task no worker knows waits, says so, costs nothing, and runs when one comes that does."""

import pytest

from tests.builders import HOUR, MINUTE, a_worker
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, submit
from tidewheel.keeper.alerts import Watch
from tidewheel.model.alert import AlertState, Rule
from tidewheel.model.states import State
from tidewheel.model.why import NoWorker
from tidewheel.store.base import Store

OLD = ("mail",)
NEW = ("mail", "report")


async def test_it_waits_uncounted_and_runs_when_someone_comes_who_knows_it(store: Store) -> None:
    old = await store.register(a_worker("old", kinds=OLD, ttl=HOUR))
    job_id = await submit(store, "report")
    for _ in range(3):
        assert await claim(store, old, kinds=frozenset(OLD)) == []

    waiting = await store.get(job_id)
    assert (waiting.state, waiting.token, waiting.failures, waiting.losses) == (State.QUEUED, 0, 0, 0)
    (reason,) = (await store.why(job_id)).reasons
    assert isinstance(reason, NoWorker)
    assert (reason.lacks, reason.sentence) == ("kind", "No worker of queue default knows kind report.")

    new = await store.register(a_worker("new", kinds=NEW, ttl=HOUR))
    (run,) = await claim(store, new, kinds=frozenset(NEW))
    assert (run.job_id, run.attempt) == (job_id, 1)
    await finish(store, new, [run])
    assert (await store.get(job_id)).state is State.SUCCEEDED


@pytest.mark.native("alerts are looked for by the server's keeper")
async def test_an_alert_fires_until_someone_comes_who_knows_it(backend: Backend, store: Store) -> None:
    await store.register(a_worker("old", kinds=OLD, ttl=HOUR))
    await submit(store, "report")
    await backend.clock.advance(2 * MINUTE)

    await Watch(store).run_once()
    (alert,) = await store.alerts(state=AlertState.FIRING)
    assert (alert.rule, alert.subject) == (Rule.NO_WORKER_OF_KIND, "report")

    await store.register(a_worker("new", kinds=NEW, ttl=HOUR))
    await Watch(store).run_once()
    assert await store.alerts(state=AlertState.FIRING) == []

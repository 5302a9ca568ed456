"""Following lines: each is told once, nothing old, and what nobody wants is not looked at again."""

from uuid import UUID

from tests.builders import MINUTE, SECOND, a_job
from tests.contract.backends import Backend
from tests.contract.test_log_search import say
from tidewheel.model.log_query import LogFilter
from tidewheel.store.base import Store
from tidewheel.store.log_following import Follower, newest_line

OTHERS = 70


async def two_tenants(store: Store) -> tuple[UUID, UUID]:
    answers = await store.submit([a_job(tenant="quiet"), a_job(tenant="loud")])
    return answers[0].job_id, answers[1].job_id


async def tail(store: Store, tenant: str, text: str = "") -> Follower:
    return Follower(store, LogFilter(text=text, tenant=tenant), await newest_line(store, tenant))


async def told(follower: Follower) -> list[str]:
    return [one.line.text for one in await follower.news()]


async def test_a_quiet_tenant_hears_nothing_old_however_loud_others_are(backend: Backend, store: Store) -> None:
    quiet, loud = await two_tenants(store)
    await say(store, quiet, ["old"])
    for number in range(OTHERS):
        await backend.clock.advance(SECOND / 10)
        await say(store, loud, [f"noise {number}"], number)
    follower = await tail(store, "quiet")
    assert await told(follower) == []
    await backend.clock.advance(SECOND)
    await say(store, quiet, ["new"], 1)
    assert await told(follower) == ["new"]
    assert await told(follower) == []


async def test_lines_that_nobody_wants_are_looked_at_once(backend: Backend, store: Store) -> None:
    _, loud = await two_tenants(store)
    follower = await tail(store, "loud", "needle")
    for number in range(OTHERS):
        await backend.clock.advance(SECOND)
        await say(store, loud, [f"hay {number}"], number)
    assert await told(follower) == []
    window = follower._window()
    assert window is not None
    assert window.stored_at > backend.clock.now() - MINUTE / 10
    await say(store, loud, ["a needle"], OTHERS)
    assert await told(follower) == ["a needle"]

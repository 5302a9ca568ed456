"""Following lines: each is told once, nothing old, and what nobody wants is not looked at."""

from collections.abc import Iterable
from uuid import UUID

import pytest

from tests.builders import SECOND, a_job
from tests.contract.backends import Backend
from tests.contract.steps import claim
from tests.contract.test_log_search import AT, index_all, say
from tidewheel.errors import Invalid
from tidewheel.model.log_piece import mark_of, pieces_of_run
from tidewheel.model.log_query import LogFilter
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.log_following import Follower, follow
from tidewheel.store.log_searching import PieceRow, Walk

OTHERS = 70


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[PieceRow]:
    """All pieces that were read to be looked through."""
    seen: list[PieceRow] = []
    take = Walk.take

    def count(walk: Walk, rows: Iterable[PieceRow]) -> None:
        seen.extend(rows := list(rows))
        take(walk, rows)

    monkeypatch.setattr(Walk, "take", count)
    return seen


async def two_tenants(store: Store) -> tuple[UUID, UUID]:
    answers = await store.submit([a_job(tenant="quiet"), a_job(tenant="loud")])
    return answers[0].job_id, answers[1].job_id


async def tail(store: Store, tenant: str, text: str = "") -> Follower:
    return await follow(store, LogFilter(text=text, tenant=tenant))


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


@pytest.mark.parametrize("words", ["fresh", "indexed"])
async def test_a_quiet_tenant_reads_no_lines_of_others(
    backend: Backend, store: Store, looked: list[PieceRow], words: str
) -> None:
    quiet, loud = await two_tenants(store)
    follower = await tail(store, "quiet")
    for number in range(OTHERS):
        await backend.clock.advance(SECOND / 10)
        await say(store, loud, [f"noise {number}"], number)
    if words == "indexed":
        await index_all(backend, store)
    assert await told(follower) == []
    assert looked == []
    await say(store, loud, ["more noise"], OTHERS)
    await say(store, quiet, ["new"])
    assert await told(follower) == ["new"]
    assert [(piece.tenant, piece.first) for piece in looked] == [("quiet", 0)]


async def test_appends_of_others_count_for_nothing_where_a_worker_told_their_lane(
    store: Store, worker: Worker, looked: list[PieceRow]
) -> None:
    quiet, _ = await two_tenants(store)
    await say(store, quiet, ["old"])
    runs = {run.tenant: run for run in await claim(store, worker, 2)}
    loud = runs["loud"]
    for number in range(OTHERS):
        said = [int(AT.timestamp()) * 10**6, mark_of("stdout", None), f"noise {number}"]
        await store.append_pieces(pieces_of_run(loud.job_id, loud.token, number, said, loud.lane))
    for newest_first in (True, False):
        page = await store.search_logs(LogFilter(tenant="quiet"), newest_first=newest_first)
        assert [one.line.text for one in page.lines] == ["old"]
        assert page.next is None, "a page looks through thirty appends and then leads on"
    assert {piece.tenant for piece in looked} == {"quiet"}


async def test_lines_that_nobody_wants_are_looked_at_once(
    backend: Backend, store: Store, looked: list[PieceRow]
) -> None:
    _, loud = await two_tenants(store)
    follower = await tail(store, "loud", "needle")
    for number in range(OTHERS):
        await backend.clock.advance(SECOND)
        await say(store, loud, [f"hay {number}"], number)
    assert await told(follower) == []
    assert await told(follower) == []
    assert sorted(piece.first for piece in looked) == [*range(OTHERS)]
    await say(store, loud, ["a needle"], OTHERS)
    assert await told(follower) == ["a needle"]
    assert len(looked) == OTHERS + 1


async def test_lines_are_told_once_while_they_are_indexed_and_the_clock_stands_or_is_set_back(
    backend: Backend, store: Store
) -> None:
    _, loud = await two_tenants(store)
    follower = await tail(store, "loud")
    heard: list[str] = []
    for number in range(40):
        await say(store, loud, [f"{number}.{line}" for line in range(60)], number * 60)
        if number % 3 == 0:
            await store.index_logs()
        if number % 5 == 0:
            heard += await told(follower)
        if number == 20:
            await backend.set_clock_back(5 * SECOND)
    for _ in range(10):
        heard += await told(follower)
    assert sorted(heard) == sorted(f"{number}.{line}" for number in range(40) for line in range(60))


async def test_a_place_leads_to_all_lines_beyond_it_and_then_to_what_comes(backend: Backend, store: Store) -> None:
    _, loud = await two_tenants(store)
    for number in range(3):
        await say(store, loud, [f"line {number}"], number)
        await backend.clock.advance(SECOND)
    page = await store.search_logs(LogFilter(tenant="loud"), newest_first=False)
    follower = await follow(store, LogFilter(tenant="loud"), after=page.lines[0].key)
    await say(store, loud, ["line 3"], 3)
    assert await told(follower) == ["line 1", "line 2"]
    assert await told(follower) == ["line 3"]
    assert await told(follower) == []


@pytest.mark.parametrize("sight", ["17.3:2:", "1893456000000000.5:9:9", "99999999999999999.1:1:", "1:2", "2" * 20])
@pytest.mark.parametrize("field", ["unseen_at", "seen_at"])
async def test_a_sight_that_no_search_gave_is_refused(store: Store, field: str, sight: str) -> None:
    with pytest.raises(Invalid, match=f"{field}.*is no sight that a search of this database gave"):
        await store.search_logs(LogFilter(), newest_first=False, **{field: sight})  # type: ignore[arg-type]


async def test_news_come_with_the_oldest_first(store: Store) -> None:
    sight = (await store.search_logs(LogFilter())).sight
    with pytest.raises(Invalid, match=r"unseen_at.*oldest first"):
        await store.search_logs(LogFilter(), unseen_at=sight)

"""Searching lines: the same is found on every store, whether its words are indexed yet or not."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_job
from tests.contract.backends import Backend
from tests.contract.steps import settle, start, stores_on, submit
from tidewheel.errors import Invalid
from tidewheel.model.access import Actor, Role
from tidewheel.model.log import LogLine
from tidewheel.model.log_piece import mark_of, pieces_of_run
from tidewheel.model.log_query import LogBacklog, LogFilter, LogKey, LogPage
from tidewheel.model.states import FINAL
from tidewheel.model.worker import Worker
from tidewheel.store import log_searching
from tidewheel.store.base import Store
from tidewheel.store.log_following import follow
from tidewheel.store.pages import LINES_BYTES, bytes_of

AT = datetime(2029, 5, 6, 7, 8, 9, tzinfo=UTC)
TEXTS = (
    "Payment of 42 EUR refused by bank-gateway",
    "payment accepted",
    "Connection to db7.example.com lost: timed out",
    '{"level": "warn", "message": "slow query", "user": {"id": 42}, "ms": 1250, "ok": false}',
    "größe überschritten ☃ 数据库 error",
    "word_with_underscores v1.2.3 /var/log/app.log",
    "",
    "no answer of localhost:5432 yet",
)
FOUND: dict[str, list[int]] = {
    "payment": [0, 1],
    "PAYMENT bank": [0],
    "pay": [],
    "pay*": [0, 1],
    "payment -refused": [1],
    "-payment": [2, 3, 4, 5, 6, 7],
    '"timed out"': [2],
    '"out timed"': [],
    "db7.example.com": [2],
    "bank-gateway": [0],
    '"by bank"': [0],
    "user.id:42": [3],
    "ms:1250 slow": [3],
    "ok:false": [3],
    'message:"slow query"': [3],
    "user.id:43": [],
    'message:"slow-query"': [],
    "lost:timed": [],
    "localhost:5432": [7],
    "-localhost:5432 answer": [],
    "-message:slow": [0, 1, 2, 3, 4, 5, 6, 7],
    "42": [0, 3],
    "GRÖSSE": [],
    "Größe": [4],
    "数据库": [4],
    "word_with_underscores": [5],
    "v1.2.3": [5],
    "payment 数据库": [],
    "": [0, 1, 2, 3, 4, 5, 6, 7],
}


async def say(store: Store, job_id: UUID, texts: Sequence[str], first: int = 0, **fields: Any) -> None:
    at = {"at": AT, "stream": "stdout", "level": None, **fields}
    await store.append_logs(
        [LogLine(job_id=job_id, token=1, number=n, text=t, **at) for n, t in enumerate(texts, first)]
    )


async def index_all(backend: Backend, store: Store) -> None:
    await backend.clock.advance(MINUTE)
    while await store.index_logs():
        pass
    assert await backend.count("log_fresh") == 0


async def found(store: Store, text: str = "", **fields: Any) -> list[str]:
    page = await store.search_logs(LogFilter(text=text, **fields), limit=1000)
    assert page.next is None
    return [one.line.text for one in page.lines]


async def walk(store: Store, where: LogFilter, limit: int, *, newest_first: bool = True) -> list[LogKey]:
    keys: list[LogKey] = []
    after: LogKey | None = None
    for _ in range(1000):
        page: LogPage = await store.search_logs(where, limit=limit, after=after, newest_first=newest_first)
        assert len(page.lines) <= limit
        keys += [one.key for one in page.lines]
        if page.next is None:
            return keys
        assert after is None or (page.next < after if newest_first else page.next > after), "a walk must get on"
        after = page.next
    raise AssertionError("a walk must come to an end")


@pytest.mark.parametrize("words", ["fresh", "indexed"])
async def test_the_same_is_found_whether_it_is_indexed_or_not(backend: Backend, store: Store, words: str) -> None:
    job_id = await submit(store)
    await say(store, job_id, TEXTS)
    if words == "indexed":
        await index_all(backend, store)
    for text, numbers in FOUND.items():
        assert sorted(await found(store, text)) == sorted(TEXTS[number] for number in numbers), text


@pytest.mark.parametrize("words", ["fresh", "indexed"])
async def test_lines_are_chosen_by_job_kind_queue_level_and_stream(backend: Backend, store: Store, words: str) -> None:
    first, second = await submit(store, "mail.send", queue="slow"), await submit(store, "report")
    await say(store, first, ["one"], level="info", stream="log")
    await say(store, first, ["two"], 1, level="WARNING", stream="log")
    await say(store, second, ["three"], stream="stderr")
    await say(store, second, ['{"level":"fatal","text":"four"}'], 1)
    if words == "indexed":
        await index_all(backend, store)
    four = '{"level":"fatal","text":"four"}'
    assert sorted(await found(store, kind="mail.send")) == ["one", "two"]
    assert sorted(await found(store, queue="slow")) == ["one", "two"]
    assert sorted(await found(store, job_id=second)) == ["three", four]
    assert sorted(await found(store, level="warn")) == ["two", four]
    assert await found(store, level="error") == [four]
    assert await found(store, stream="stderr") == ["three"]
    assert await found(store, "two", kind="report") == []


@pytest.mark.parametrize("words", ["fresh", "indexed"])
async def test_tenants_do_not_find_each_others_lines(backend: Backend, store: Store, words: str) -> None:
    for tenant in ("a", "b"):
        await say(store, await submit(store, tenant=tenant), [f"shared word of {tenant}"])
    if words == "indexed":
        await index_all(backend, store)
    assert await found(store, "shared", tenant="a") == ["shared word of a"]
    assert await found(store, "b", tenant="a") == []
    assert await found(store, tenant="nobody") == []
    assert len(await found(store, "shared")) == 2
    page = await store.search_logs(LogFilter(text="shared", tenant="b"))
    assert [(one.tenant, one.kind, one.queue) for one in page.lines] == [("b", "echo", "default")]


async def test_a_walk_sees_every_line_once_in_order_while_lines_are_indexed(backend: Backend, store: Store) -> None:
    job_id, other = [answer.job_id for answer in await store.submit([a_job(), a_job()])]
    for number in range(40):
        await say(store, (job_id, other)[number % 2], [f"tick {number}"] * 30, 30 * number)
        await backend.clock.advance(SECOND)
        if number == 20:
            await store.index_logs()
    where = LogFilter(text="tick")
    newest = await walk(store, where, 37)
    assert newest == sorted(set(newest), reverse=True)
    assert len(newest) == 40 * 30
    assert await walk(store, where, 101, newest_first=False) == newest[::-1]
    await index_all(backend, store)
    assert await walk(store, where, 113) == newest
    half = newest[len(newest) // 2]
    assert await walk(store, where, 500) == newest
    page = await store.search_logs(where, limit=5, after=half)
    place = newest.index(half) + 1
    assert [one.key for one in page.lines] == newest[place : place + 5]


@pytest.mark.parametrize("words", ["fresh", "indexed"])
async def test_pages_of_large_lines_end_by_their_size(backend: Backend, store: Store, words: str) -> None:
    job_id = await submit(store)
    for first in range(0, 150, 25):
        await say(store, job_id, [f"tick {'x' * 16_384}"] * 25, first)
        await backend.clock.advance(SECOND)
    if words == "indexed":
        await index_all(backend, store)
    for newest_first in (True, False):
        page = await store.search_logs(LogFilter(text="tick"), limit=1000, newest_first=newest_first)
        size = bytes_of([one.line for one in page.lines])
        assert LINES_BYTES <= size < LINES_BYTES + 2 * 16_384
        assert len(await walk(store, LogFilter(text="tick"), 1000, newest_first=newest_first)) == 150
    follower = await follow(store, LogFilter(text="tick"), after=LogKey(AT, UUID(int=0), -1, -1))
    told = [len(await follower.news()) for _ in range(4)]
    assert (max(told) < 130, sum(told)) == (True, 150)


async def test_a_walk_through_many_appends_of_one_moment_gets_on(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    for number in range(150):
        await say(store, job_id, [f"tick {number}"], number)
    assert len(await walk(store, LogFilter(text="tick"), 40)) == 150
    await backend.clock.advance(SECOND)
    for number in range(150, 300):
        await say(store, job_id, [f"tock {number}"], number)
    assert len(await walk(store, LogFilter(text="tick"), 40)) == 150
    assert len(await walk(store, LogFilter(), 40, newest_first=False)) == 300


async def test_lines_are_chosen_by_the_time_at_which_they_were_stored(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    begun = backend.clock.now()
    for number in range(4):
        await say(store, job_id, [f"hour {number}"], number)
        await backend.clock.advance(HOUR)
    expected = ["hour 2", "hour 1"]
    window: dict[str, Any] = {"since": begun + HOUR, "before": begun + 3 * HOUR}
    assert await found(store, "hour", **window) == expected
    await index_all(backend, store)
    assert await found(store, "hour", **window) == expected
    assert await found(store, **window) == expected


async def test_lines_that_came_late_or_twice_are_found_once(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker, "late")
    await settle(store, worker, run)
    await say(store, run.job_id, ["last words"])
    await say(store, run.job_id, ["last words"])
    assert await found(store, "words", kind="late") == ["last words"]
    await index_all(backend, store)
    assert await found(store, "words", kind="late") == ["last words"]


@pytest.mark.parametrize("words", ["fresh", "indexed"])
async def test_pieces_that_a_worker_put_together_are_lines_like_others(
    backend: Backend, store: Store, worker: Worker, words: str
) -> None:
    """A worker knows the lane of the run; whoever does not know it may leave it out."""
    run = await start(store, worker, "told")
    begun = int(AT.timestamp()) * 10**6
    said = [begun, mark_of("stdout", None), "one ☃", begun + 2, mark_of("log", "info"), 'two "quoted"']
    await store.append_pieces(pieces_of_run(run.job_id, run.token, 1, said, run.lane))
    await store.append_pieces(pieces_of_run(run.job_id, run.token, 3, [begun, mark_of("log", "error"), "three"]))
    if words == "indexed":
        await index_all(backend, store)
    assert await store.logs(run.job_id) == [
        LogLine(run.job_id, run.token, 1, AT, "stdout", None, "one ☃"),
        LogLine(run.job_id, run.token, 2, AT + timedelta(microseconds=2), "log", "info", 'two "quoted"'),
        LogLine(run.job_id, run.token, 3, AT, "log", "error", "three"),
    ]
    assert sorted(await found(store, kind="told")) == ["one ☃", "three", 'two "quoted"']
    assert await found(store, "two", level="info", stream="log") == ['two "quoted"']
    assert await found(store, level="error") == ["three"]


async def test_lines_of_jobs_that_nobody_knows_are_not_found(backend: Backend, store: Store) -> None:
    await say(store, UUID(int=7 << 76 | 1 << 63), ["ghost"])
    assert await found(store, "ghost") == []
    await index_all(backend, store)
    assert await found(store, "ghost") == []


async def test_lines_can_wait_for_others_but_not_for_ever(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    await say(store, job_id, ["few"] * 3)
    assert await store.index_logs() == 0
    await say(store, job_id, ["more"] * 997, 3)
    assert await store.index_logs() == 1000
    await say(store, job_id, ["few"] * 3, 1000)
    assert await store.index_logs() == 0
    await backend.clock.advance(MINUTE)
    assert await store.index_logs() == 3
    assert await store.index_logs() == 0


async def test_two_who_index_at_once_do_no_harm(backend: Backend) -> None:
    stores = await stores_on(backend, 2)
    job_id = await submit(stores[0])
    for number in range(20):
        await say(stores[0], job_id, ["tick"] * 250, 250 * number)
    indexed = 0
    while done := sum(await asyncio.gather(*(one.index_logs() for one in stores * 5))):
        indexed += done
    assert indexed == 5000
    assert await backend.count("log_segment") == 5
    assert len(await walk(stores[1], LogFilter(text="tick"), 1000)) == 5000


async def test_an_erased_job_leaves_no_words(backend: Backend, store: Store, worker: Worker) -> None:
    run, other = await start(store, worker), await submit(store)
    await say(store, run.job_id, ["grace hopper"])
    await say(store, other, ["somebody else"])
    await index_all(backend, store)
    await settle(store, worker, run)
    await store.erase(run.job_id, by=Actor(role=Role.ADMIN, name="root"))
    assert await backend.count("log_segment") == 0
    assert await found(store, "hopper") == []
    assert await found(store, "somebody") == ["somebody else"]
    await index_all(backend, store)
    assert await found(store) == ["somebody else"]


async def test_words_go_with_their_lines(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    await say(store, job_id, ["old"])
    await index_all(backend, store)
    await backend.clock.advance(40 * DAY)
    await store.prepare_days()
    await say(store, job_id, ["young"], 1)
    await index_all(backend, store)
    await store.retire(dict.fromkeys(FINAL, 60 * DAY))
    assert await found(store) == ["young"]
    assert await backend.count("log_segment") == 1


async def test_large_lines_and_long_words_are_found(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    long = "x" * 100
    big = " ".join(f"w{number}" for number in range(9000))
    await say(store, job_id, [f"a {long}y", f"a {long}z", *[big] * 20])
    await index_all(backend, store)
    assert await found(store, f"{long}y") == [f"a {long}y"]
    assert len(await found(store, "w8999 w17")) == 20


async def test_more_words_than_an_index_can_hold_of_one_segment_are_all_found(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    words = [f"größenübersprünge_{number:06d}_äöü" for number in range(50_000)]
    await say(store, job_id, [" ".join(words[first : first + 1000]) for first in range(0, len(words), 1000)])
    await index_all(backend, store)
    for word in words[::1000]:
        assert len(await found(store, word)) == 1, word


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ('"open', "not closed"),
        ("a*b", "only at the end"),
        ("a-b*", "only at the end"),
        ("!!!", "no word"),
        ('""', "no word"),
        ("-", "no word"),
        ("x" * 501, "at most 500"),
        ("a " * 21, "at most 20"),
        ("\0", "no word"),
    ],
)
async def test_a_query_that_makes_no_sense_gets_one_clear_answer(store: Store, query: str, why: str) -> None:
    with pytest.raises(Invalid, match=rf"q .*{why}|q: .*{why}"):
        await store.search_logs(LogFilter(text=query))


@pytest.mark.parametrize("wrong", [{"level": "a b"}, {"level": ""}, {"kind": "a b\n"}])
async def test_a_filter_that_makes_no_sense_names_its_field(store: Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=next(iter(wrong))):
        await store.search_logs(LogFilter(**wrong))
    with pytest.raises(Invalid, match="limit"):
        await store.search_logs(LogFilter(), limit=0)


@pytest.mark.parametrize("words", ["fresh", "indexed"])
@pytest.mark.parametrize("order", ["newest", "oldest"])
async def test_lines_that_came_twice_are_found_once_however_many_pages_lie_between(
    backend: Backend, store: Store, words: str, order: str
) -> None:
    newest_first = order == "newest"
    twice, other = await submit(store), await submit(store)
    await say(store, twice, ["payment one", "payment two"])
    for number in range(10):
        await backend.clock.advance(SECOND / 20)
        await say(store, other, ["payment of another"] * 5, 5 * number)
    await backend.clock.advance(SECOND / 20)
    await say(store, twice, ["payment one", "payment two"])
    if words == "indexed":
        await index_all(backend, store)
    for limit in (5, 1000):
        keys = await walk(store, LogFilter(text="payment"), limit, newest_first=newest_first)
        assert len(keys) == len({(key.job_id, key.number) for key in keys}) == 52
        assert [key.number for key in (keys if newest_first else keys[::-1])][-2:] == [1, 0], "the first counts"


async def test_what_waits_for_the_index_is_counted_with_how_long_it_waits(backend: Backend, store: Store) -> None:
    assert await store.unindexed_logs() == LogBacklog(0, timedelta(0))
    job_id, other = [answer.job_id for answer in await store.submit([a_job(), a_job()])]
    await say(store, job_id, ["one", "two"])
    await say(store, other, ["three"])
    await backend.clock.advance(MINUTE)
    await say(store, job_id, ["four"], 2)
    assert await store.unindexed_logs() == LogBacklog(4, MINUTE)
    await backend.set_clock_back(2 * MINUTE)
    assert await store.unindexed_logs() == LogBacklog(4, timedelta(0))
    await backend.clock.advance(2 * MINUTE)
    await index_all(backend, store)
    assert await store.unindexed_logs() == LogBacklog(0, timedelta(0))
    await backend.clock.advance(HOUR)
    await store.cancel(job_id)
    await store.erase(job_id, by=Actor(role=Role.ADMIN, name="root"))
    await backend.clock.advance(SECOND)
    assert (await store.unindexed_logs()).waits == SECOND, "old lines that are to be indexed anew wait since then"


async def test_lines_that_came_again_with_more_behind_them_are_all_found(backend: Backend, store: Store) -> None:
    job_id = await submit(store)
    await say(store, job_id, ["payment one"])
    await backend.clock.advance(SECOND)
    await say(store, job_id, ["payment one", "payment two"])
    assert await found(store, "payment") == ["payment two", "payment one"]


@pytest.mark.parametrize("words", ["fresh", "indexed"])
@pytest.mark.parametrize("order", ["newest", "oldest"])
async def test_a_page_looks_through_no_more_lines_than_it_may_and_leads_on(
    backend: Backend, store: Store, monkeypatch: pytest.MonkeyPatch, words: str, order: str
) -> None:
    monkeypatch.setattr(log_searching, "MOST_LINES", 3000)
    job_id = await submit(store)
    for number in range(12):
        await backend.clock.advance(SECOND)
        await say(store, job_id, ["hay"] * 1000, 1000 * number)
    if words == "indexed":
        await index_all(backend, store)
    looked: list[int] = []
    page_of = log_searching.Walk.page

    def page(walk: log_searching.Walk, sight: str) -> LogPage:
        looked.append(walk.looked)
        return page_of(walk, sight)

    monkeypatch.setattr(log_searching.Walk, "page", page)
    assert await walk(store, LogFilter(text='"hay hay"'), 50, newest_first=order == "newest") == []
    assert len(looked) >= 4
    assert max(looked) <= 4000
    assert sum(looked) <= 20_000, "most lines are looked at once"


async def test_appends_of_one_instant_are_looked_through_however_many_lines_they_have(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_searching, "MOST_LINES", 10)
    job_id = await submit(store)
    for number in range(9):
        await say(store, job_id, ["hay"] * 20, 20 * number)
    for newest_first in (True, False):
        assert len(await walk(store, LogFilter(text="hay"), 7, newest_first=newest_first)) == 180

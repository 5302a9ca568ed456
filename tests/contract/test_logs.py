"""Lines that runs wrote: each once, in order, for those who may see the job."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.builders import DAY, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, settle, start, submit
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.access import Actor, Role
from tidewheel.model.log import MAX_LINE, LogLine
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.tenant import Tenant
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.pages import LINES_BYTES, bytes_of, fills_page

ROOT = Actor(role=Role.ADMIN, name="root")
AT = datetime(2029, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


def a_line(job_id: UUID, number: int = 0, token: int = 1, **fields: Any) -> LogLine:
    told = {"at": AT, "stream": "stdout", "level": None, "text": f"line {number}", **fields}
    return LogLine(job_id=job_id, token=token, number=number, **told)


async def test_lines_come_back_as_they_went(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    lines = [
        a_line(run.job_id, 0, run.token),
        a_line(run.job_id, 1, run.token, stream="stderr", text=""),
        a_line(run.job_id, 2, run.token, stream="log", level="WARNING", text="größer\n\t☃ 'quoted' \\x"),
        a_line(run.job_id, 3, run.token, stream="system", text="x" * MAX_LINE),
    ]
    await store.append_logs(lines)

    assert await store.logs(run.job_id) == lines
    await settle(store, worker, run)
    assert await store.logs(run.job_id) == lines


async def test_lines_are_in_order_of_run_and_number_whenever_they_came(store: Store) -> None:
    job_id, other = [answer.job_id for answer in await store.submit(some_jobs(2))]
    places = [(2, 0), (1, 5), (1, 1), (3, 10**12), (1, 0), (2, 7)]
    for token, number in places:
        await store.append_logs([a_line(job_id, number, token), a_line(other, number, token)])

    assert [(line.token, line.number) for line in await store.logs(job_id)] == sorted(places)


async def test_pages_go_on_where_the_last_one_ended(store: Store) -> None:
    job_id = await submit(store)
    await store.append_logs([a_line(job_id, number, token) for token in (1, 2) for number in range(25)])

    walked: list[LogLine] = []
    after = None
    while page := await store.logs(job_id, after=after, limit=7):
        assert len(page) <= 7
        walked += page
        after = page[-1].token, page[-1].number

    assert walked == await store.logs(job_id)
    assert len(walked) == 50


async def test_the_last_lines_come_first_for_whoever_wants_to_follow(store: Store) -> None:
    job_id = await submit(store)
    for token in (1, 2):
        for first in (0, 10, 20):
            await store.append_logs([a_line(job_id, number, token) for number in range(first, min(first + 10, 25))])
    lines = await store.logs(job_id)

    assert await store.last_logs(job_id, limit=7) == lines[-7:]
    assert await store.last_logs(job_id, limit=1000) == lines
    walked: list[LogLine] = []
    before = None
    while page := await store.last_logs(job_id, before=before, limit=7):
        assert len(page) <= 7
        walked = [*page, *walked]
        before = page[0].token, page[0].number
    assert walked == lines
    for asked, tenant in ((job_id, "b"), (uuid4(), None)):
        with pytest.raises(NotFound):
            await store.last_logs(asked, tenant=tenant)


@pytest.mark.parametrize("letter", ["x", "ü"])
async def test_pages_of_large_lines_end_by_their_size_and_go_on_at_the_right_line(store: Store, letter: str) -> None:
    job_id = await submit(store)
    for token in (1, 2):
        for first in range(0, 90, 30):
            text = letter * (16 * 1024)
            lines = [a_line(job_id, n, token, text=f"{n} {text}") for n in range(first, first + 30)]
            await store.append_logs([*lines, a_line(job_id, 90 + first, token)])

    forth: list[LogLine] = []
    while page := await store.logs(job_id, after=(forth[-1].token, forth[-1].number) if forth else None):
        assert bytes_of(page[:-1]) < LINES_BYTES, "the line before the last did not fill it"
        forth += page
        assert fills_page(page, 1000) == (len(forth) < 186)
    assert [(line.token, line.number) for line in forth] == sorted({(line.token, line.number) for line in forth})
    assert len(forth) == 186
    back: list[LogLine] = []
    while page := await store.last_logs(job_id, before=(back[0].token, back[0].number) if back else None):
        assert bytes_of(page[1:]) < LINES_BYTES
        back = [*page, *back]
        assert fills_page(page, 1000) == (len(back) < 186)
    assert back == forth
    assert await store.logs(job_id, limit=3) == forth[:3]


async def test_a_line_that_comes_again_is_shown_once_as_it_came_first(backend: Backend, store: Store) -> None:
    """After an answer that was lost a worker sends its lines again, perhaps on the next day."""
    job_id = await submit(store)
    lines = [a_line(job_id, number) for number in range(5)]
    await store.append_logs(lines)
    await backend.clock.advance(DAY)
    await store.append_logs([a_line(job_id, number, text="again") for number in range(3, 8)])

    texts = [line.text for line in await store.logs(job_id)]
    assert texts == [*(line.text for line in lines), "again", "again", "again"]
    assert [line.number for line in await store.logs(job_id, after=(1, 2), limit=3)] == [3, 4, 5]


async def test_who_may_not_see_the_job_does_not_see_its_lines(store: Store) -> None:
    job_id = await submit(store, tenant="a")
    await store.append_logs([a_line(job_id)])

    assert len(await store.logs(job_id, tenant="a")) == 1
    for asked, tenant in ((job_id, "b"), (uuid4(), None)):
        with pytest.raises(NotFound):
            await store.logs(asked, tenant=tenant)


async def test_what_no_store_can_hold_is_replaced(store: Store) -> None:
    job_id = await submit(store)
    await store.append_logs([a_line(job_id, text="a\0b\udc80" + "x" * MAX_LINE, level="W\0")])

    (line,) = await store.logs(job_id)
    assert line.text.startswith("a\ufffdb\ufffdx")
    assert (len(line.text), line.level) == (MAX_LINE, "W\ufffd")


BAD: dict[str, dict[str, Any]] = {
    "stream": {"stream": "smoke"},
    "token": {"token": -1},
    "number": {"number": 2**63},
    "at": {"at": datetime(2029, 1, 1)},  # noqa: DTZ001 - it must be refused
}


@pytest.mark.parametrize(("field", "wrong"), BAD.items(), ids=BAD)
async def test_a_bad_line_is_refused_with_all_of_its_batch(store: Store, field: str, wrong: dict[str, Any]) -> None:
    job_id = await submit(store)
    bad = LogLine(
        **{"job_id": job_id, "token": 1, "number": 1, "at": AT, "stream": "log", "level": None, "text": "", **wrong}
    )

    with pytest.raises(Invalid, match=rf"lines\[1\]\.{field}"):
        await store.append_logs([a_line(job_id), bad])

    assert await store.logs(job_id) == []


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 10_001}, {"after": (2**63, 0)}, {"after": (0, -2)}])
async def test_a_page_has_its_bounds(store: Store, wrong: dict[str, Any]) -> None:
    job_id = await submit(store)
    with pytest.raises(Invalid, match=next(iter(wrong))):
        await store.logs(job_id, **wrong)


async def test_no_lines_are_no_work(store: Store) -> None:
    await store.append_logs([])


async def test_lines_go_when_they_are_old(backend: Backend, store: Store, worker: Worker) -> None:
    """Whole days of them (UTC) on PostgreSQL; those of jobs that still run as well."""
    run = await start(store, worker)
    await store.append_logs([a_line(run.job_id, number) for number in range(50)])
    await backend.clock.advance(20 * DAY)
    await store.prepare_days()
    await store.append_logs([a_line(run.job_id, number) for number in range(50, 60)])
    keep: dict[State, timedelta] = dict.fromkeys(FINAL, 60 * DAY)
    await store.retire(keep, limit=7)
    assert len(await store.logs(run.job_id)) == 60, "thirty days unless one says otherwise"

    await backend.clock.advance(12 * DAY)
    await store.retire(keep, limit=7)
    assert [line.number for line in await store.logs(run.job_id)] == [*range(50, 60)]

    await store.retire(keep, logs=5 * DAY, limit=7)
    assert await store.logs(run.job_id) == []


async def test_a_tenant_may_keep_its_lines_shorter_or_longer(backend: Backend, store: Store, worker: Worker) -> None:
    for name, age in (("brief", 2 * DAY), ("long", 90 * DAY)):
        assert (await store.set_tenant(Tenant(name, keep_logs=age), by=ROOT)).keep_logs == age
    runs = {name: await start(store, worker, tenant=name) for name in ("brief", "default", "long")}
    await store.append_logs([a_line(run.job_id, number) for number in range(9) for run in runs.values()])
    keep: dict[State, timedelta] = dict.fromkeys(FINAL, 200 * DAY)

    async def left() -> dict[str, int]:
        await store.retire(keep, limit=4)
        return {name: len(await store.logs(run.job_id)) for name, run in runs.items()}

    assert await left() == {"brief": 9, "default": 9, "long": 9}
    await backend.clock.advance(4 * DAY)
    assert await left() == {"brief": 0, "default": 9, "long": 9}
    await backend.clock.advance(30 * DAY)
    assert await left() == {"brief": 0, "default": 0, "long": 9}
    await store.set_tenant(Tenant("long", keep_logs=10 * DAY), by=ROOT)
    assert await left() == {"brief": 0, "default": 0, "long": 0}


async def test_lines_of_a_run_that_was_lost_are_kept(store: Store, worker: Worker) -> None:
    first = await start(store, worker)
    await settle(store, worker, first, Cause.CRASHED)
    (second,) = await claim(store, worker)
    await store.append_logs([a_line(second.job_id, 0, second.token), a_line(first.job_id, 0, first.token)])

    assert [line.token for line in await store.logs(first.job_id)] == [first.token, second.token]

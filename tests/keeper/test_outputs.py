"""What is of jobs that are gone is removed, in pages, and nothing else is."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest

from tests.builders import DAY
from tidewheel.blobs import Blobs, open_blobs
from tidewheel.errors import Unavailable
from tidewheel.keeper import outputs
from tidewheel.keeper.outputs import Collector
from tidewheel.model.ids import EPOCH, MILLISECOND, make_id
from tidewheel.testing import FakeClock


class Known:
    """A store that knows some jobs, or is away."""

    def __init__(self, jobs: Sequence[UUID] = (), *, away: bool = False, key: bytes = b"1") -> None:
        self._jobs = set(jobs)
        self._key = key
        self._away = away
        self.asked: list[int] = []

    async def signing_key(self) -> bytes:
        return self._key

    async def known_jobs(self, job_ids: Sequence[UUID]) -> set[UUID]:
        if self._away:
            raise Unavailable("away")
        self.asked.append(len(job_ids))
        return self._jobs & set(job_ids)


async def some_jobs(clock: FakeClock, number: int, age: timedelta) -> tuple[Blobs, list[UUID]]:
    blobs, made = open_blobs("memory://"), (clock.now() - age - EPOCH) // MILLISECOND
    jobs = [make_id(made, bits) for bits in range(number)]
    for job_id in jobs:
        await blobs.store_result(job_id, 1, "1")
    return blobs, jobs


async def test_all_pages_are_gone_through_and_the_next_turn_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "PAGE", 3)
    monkeypatch.setattr(outputs, "PAGES", 2)
    clock = FakeClock()
    blobs, jobs = await some_jobs(clock, 10, 2 * DAY)
    known = Known(jobs[::2])
    collector = Collector(known, blobs, clock)  # type: ignore[arg-type]

    assert [await collector.run_once() for _ in range(4)] == [3, 2, 0, 0]
    assert known.asked == [3, 3, 3, 1, 3, 2]
    assert (await blobs.jobs_with_outputs("", 10))[0] == jobs[::2]


async def test_nothing_is_removed_of_young_jobs_nor_while_the_store_is_away() -> None:
    clock = FakeClock()
    young, old = await some_jobs(clock, 2, DAY / 2), await some_jobs(clock, 2, 2 * DAY)

    assert await Collector(Known(), young[0], clock).run_once() == 0  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        await Collector(Known(away=True), old[0], clock).run_once()  # type: ignore[arg-type]

    for blobs, jobs in (young, old):
        assert (await blobs.jobs_with_outputs("", 10))[0] == jobs


async def test_nothing_is_removed_from_a_place_of_another_database(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    blobs, jobs = await some_jobs(clock, 2, 2 * DAY)
    await Collector(Known(jobs), blobs, clock).run_once()  # type: ignore[arg-type]
    other = Collector(Known(key=b"2"), blobs, clock)  # type: ignore[arg-type]

    assert [await other.run_once(), await other.run_once()] == [0, 0]
    assert (await blobs.jobs_with_outputs("", 10))[0] == jobs
    assert caplog.text.count("mark of another database") == 1
    assert await Collector(Known(), blobs, clock).run_once() == 2  # type: ignore[arg-type]

"""Of kinds that were noted in what was undone nothing is remembered; what was noted is not noted again."""

import pytest

from tests.builders import SECOND, a_job, some_jobs
from tests.contract.steps import submit
from tidewheel.errors import QueueFull, Unavailable
from tidewheel.model.cap import QueueCap
from tidewheel.store.joining import Inside
from tidewheel.store.sqlite import SqliteStore
from tidewheel.testing import FakeClock

KIND = "needle"
NOTED = "SELECT count(*) FROM phrase JOIN phrase_moment AS made ON made.phrase = phrase.id WHERE phrase.phrase = ?"


def noted(store: SqliteStore) -> int:
    count: int = store._connection.execute(NOTED, (KIND,)).get
    return count


async def test_what_a_caller_undoes_is_noted_again(store: SqliteStore) -> None:
    def work(inside: Inside) -> None:
        inside.submit([a_job(KIND)])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.transact(work)
    assert noted(store) == 0
    await submit(store, KIND)
    assert noted(store) == 1


async def test_what_a_full_queue_refuses_is_noted_again(store: SqliteStore) -> None:
    await store.set_cap(QueueCap("default", "default", 1, "reject"))
    with pytest.raises(QueueFull):
        await store.submit(some_jobs(2, kind=KIND))
    await submit(store, KIND)
    assert noted(store) == 1


async def test_what_a_failed_commit_undoes_is_noted_again(store: SqliteStore) -> None:
    store._connection.set_commit_hook(lambda: True)
    with pytest.raises(Unavailable):
        await submit(store, KIND)
    store._connection.set_commit_hook(None)
    await submit(store, KIND)
    assert noted(store) == 1


async def test_only_the_first_submit_of_a_kind_in_a_second_notes_it(store: SqliteStore, clock: FakeClock) -> None:
    """Where what it noted is taken away, the others do not bring it back."""
    await submit(store, KIND)
    store._connection.execute("DELETE FROM phrase_moment")
    for count in (1, 5):
        await store.submit(some_jobs(count, kind=KIND))
    assert noted(store) == 0
    await clock.advance(2 * SECOND)
    await submit(store, KIND)
    assert noted(store) == 1

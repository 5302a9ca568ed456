"""Dead letters through the app."""

from typing import Any
from uuid import uuid4

import pytest

from tests.sdk.work import end_all
from tidewheel import App, Conflict, Invalid, NotFound, State
from tidewheel.model.states import Cause
from tidewheel.sdk import dead_letters
from tidewheel.sdk.task import Task


@pytest.fixture
def charge(app: App) -> Any:
    @app.task(name="charge")
    def charge(order: int, note: str = "") -> int:
        return order + len(note)

    return charge


def let_die(app: App, charge: Task[Any, Any], number: int) -> list[Any]:
    jobs = [charge.enqueue(order) for order in range(number)]
    app.run(end_all(app, cause=Cause.GAVE_UP))
    return jobs


def test_dead_letters_are_grouped_listed_and_counted(app: App, charge: Any) -> None:
    jobs = let_die(app, charge, 3)
    (group,) = app.dead_letters.groups()
    assert (group.kind, group.jobs, group.sample) == ("charge", 3, jobs[-1].id)
    assert group.error is not None
    assert group.error.message == "it broke"
    assert [letter.id for letter in app.dead_letters.list(fingerprint=group.fingerprint)] == [j.id for j in jobs[::-1]]
    assert app.dead_letters.count(kind="charge") == 3
    assert app.dead_letters.count(kind="refund") == 0


def test_a_redrive_can_be_tried_out_first(app: App, charge: Any) -> None:
    jobs = let_die(app, charge, 3)
    assert app.dead_letters.redrive(dry_run=True, kind="charge") == 3
    assert {job.state() for job in jobs} == {State.DEAD}
    assert app.dead_letters.redrive(kind="charge") == 3
    assert {job.state() for job in jobs} == {State.QUEUED}


def test_a_redrive_of_many_pieces_keeps_its_rate(app: App, charge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "PIECE", 2)
    jobs = let_die(app, charge, 5)
    assert app.dead_letters.redrive(rate=1) == 5
    due = [job.info().run_at for job in jobs]
    assert due == sorted(due)
    assert 3.9 < (due[-1] - due[0]).total_seconds() < 6


def test_a_dead_letter_goes_round_with_other_arguments_that_are_checked(app: App, charge: Any) -> None:
    first, second, third = let_die(app, charge, 3)
    assert app.dead_letters.retry(first).args == {"order": 0}
    assert app.dead_letters.retry(second.id, {"order": 7, "note": "by hand"}).args == {"order": 7, "note": "by hand"}
    for wrong in ({"number": 7}, {}, {"order": 7, "colour": "red"}):
        with pytest.raises(Invalid, match="args"):
            app.dead_letters.retry(third, wrong)
    with pytest.raises(Conflict):
        app.dead_letters.retry(first)
    with pytest.raises(NotFound):
        app.dead_letters.retry(uuid4())


def test_other_tenants_letters_are_not_seen(url: str, app: App, charge: Any) -> None:
    (job,) = let_die(app, charge, 1)
    with App(url, tenant="theirs") as other:
        assert other.dead_letters.groups() == []
        assert other.dead_letters.redrive() == 0
        with pytest.raises(NotFound):
            other.dead_letters.retry(job.id)


async def test_the_async_face_does_the_same(url: str) -> None:
    async with App(url) as app:

        @app.task
        async def charge(order: int) -> None: ...

        job = await charge.aenqueue(1)
        await end_all(app, cause=Cause.GAVE_UP)
        (group,) = await app.dead_letters.agroups()
        assert await app.dead_letters.acount(fingerprint=group.fingerprint) == 1
        assert [letter.id for letter in await app.dead_letters.alist()] == [job.id]
        assert await app.dead_letters.aredrive(fingerprint=group.fingerprint) == 1
        await end_all(app, cause=Cause.GAVE_UP)
        assert (await app.dead_letters.aretry(job, {"order": 2})).args == {"order": 2}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"rate": 0}, "rate"),
        ({"kind": "a b"}, "kind"),
        ({"fingerprint": "?"}, "fingerprint"),
        ({"colour": 1}, "colour"),
    ],
)
def test_bad_questions_are_refused(app: App, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        app.dead_letters.redrive(**wrong)
    assert caught.value.field == field

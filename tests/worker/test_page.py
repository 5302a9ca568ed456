"""The page that the supervisor shares with a child."""

import os
from uuid import uuid4

from tidewheel.worker.page import Current, Page


def test_both_sides_see_what_the_other_writes() -> None:
    ours = Page()
    theirs = Page(os.dup(ours.fd))
    job = uuid4()

    ours.lease_until = 12.5
    theirs.enter(job.bytes, 7, 99.0)

    assert theirs.lease_until == 12.5
    seen = [ours.current]
    theirs.leave()
    seen.append(ours.current)
    assert seen == [Current(job, 7, 99.0), None]
    blamed = [ours.blamed]
    theirs.blame(job.bytes, 8)
    blamed.append(ours.blamed)
    assert blamed == [None, Current(job, 8, 0.0)]
    theirs.close()
    ours.close()


def test_the_other_side_sees_which_runs_are_under_way() -> None:
    ours = Page()
    theirs = Page(os.dup(ours.fd))
    first, second, third, fourth = (uuid4() for _ in range(4))

    for job in (first, second, third):
        theirs.begun(job.bytes, 1)
    theirs.over(second.bytes, 1)
    theirs.over(second.bytes, 1)
    theirs.over(first.bytes, 2)
    theirs.begun(fourth.bytes, 5)
    theirs.begun(second.bytes, 2)

    assert ours.under_way == {(first, 1), (third, 1), (fourth, 5), (second, 2)}
    theirs.close()
    ours.close()


def test_more_runs_than_there_is_room_for_are_forgotten_and_disturb_none() -> None:
    page = Page()
    jobs = [uuid4() for _ in range(12_000)]

    for job in jobs:
        page.begun(job.bytes, 1)
    noted = page.under_way
    for job in jobs:
        page.over(job.bytes, 1)
    page.begun(jobs[-1].bytes, 1)

    assert (jobs[0], 1) in noted
    assert 10_000 < len(noted) < 12_000
    assert page.under_way == {(jobs[-1], 1)}
    page.close()

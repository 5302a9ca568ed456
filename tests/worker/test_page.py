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

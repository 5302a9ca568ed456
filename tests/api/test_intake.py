"""Submits that come one by one share commits."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.api.conftest import CLOCK, Api
from tidewheel.model.job import JobSpec
from tidewheel.server.intake import AT_ONCE, MOST_IN_GROUP

SUBMITS = 60


async def test_submits_that_come_while_a_commit_is_under_way_share_the_next(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []
    gate, submit = asyncio.Event(), lone_api.store.submit

    async def held(specs: Sequence[JobSpec]) -> Any:
        groups.append(len(specs))
        await gate.wait()
        return await submit(specs)

    monkeypatch.setattr(lone_api.store, "submit", held)
    sent = [asyncio.ensure_future(lone_api.submit(kind=f"kind-{number}")) for number in range(SUBMITS)]
    async with asyncio.timeout(20):
        while not groups or sum(groups) + len(lone_api.service.intake._waiting) < SUBMITS:
            await CLOCK.sleep(0.001)
        assert 1 <= len(groups) <= AT_ONCE, "no more commits at once than that"
        gate.set()
        ids = await asyncio.gather(*sent)

    assert sum(groups) == SUBMITS <= MOST_IN_GROUP
    assert len(groups) <= AT_ONCE + 1, "all that waited went together"
    assert [(await lone_api.get(job_id))["kind"] for job_id in ids] == [f"kind-{n}" for n in range(SUBMITS)]

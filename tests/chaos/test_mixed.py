"""Everything at once, for a short while: the small form of `make chaos`."""

import pytest

from harness.arena import StoreName
from harness.chaos import CLEAN, Plan, page, run
from tests.chaos.verdict import BOTH

pytestmark = [pytest.mark.chaos, pytest.mark.proof]


@BOTH
async def test_a_cluster_that_is_broken_at_random_breaks_no_promise(store: StoreName) -> None:
    report = await run(Plan(store=store, seconds=15, seed=4711))

    assert report.exit_code == CLEAN, page(report)

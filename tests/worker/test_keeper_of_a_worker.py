"""Every worker does a share of the chores, by the settings it was started with, unless it is told not to."""

from typing import Any

import msgspec
import pytest

from tidewheel.model.retention import Upkeep, parse_upkeep
from tidewheel.worker.link import Setup
from tidewheel.worker.members import MemberSpec
from tidewheel.worker.plan import Modules, WorkerPlan, members_of

MODULES = Modules(runner="runner", host="host", keeper="keeper", server="server")


def keepers(**fields: Any) -> list[MemberSpec]:
    plan = WorkerPlan(database="sqlite:///x.db", blobs="file:///x", scratch="/tmp", name="w", **fields)
    return [member for member in members_of(plan, [], MODULES) if member.module == "keeper"]


def test_a_worker_has_a_keeper_unless_told_not_to() -> None:
    assert len(keepers()) == 1
    assert keepers(keeper=False) == []


@pytest.mark.parametrize("upkeep", [Upkeep(), parse_upkeep(["dead=90d", "mail:send:succeeded=1h"], "off")])
def test_the_keeper_is_told_how_long_things_are_kept(upkeep: Upkeep) -> None:
    (member,) = keepers(upkeep=upkeep)
    heard = msgspec.json.decode(msgspec.json.encode(member.setup), type=Setup)
    assert heard.upkeep == upkeep

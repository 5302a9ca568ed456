"""Trees of runs that have a bound get a control group of their own, where there can be one.

Moving a process takes the kernel some milliseconds, so only those are moved that have a bound, and they stay.
"""

import asyncio

from tidewheel.worker.executors.launching import Tree
from tidewheel.worker.executors.underway import Kills
from tidewheel.worker.sandbox import cgroups, tree
from tidewheel.worker.sandbox.cgroups import Group, Home


class Groups:
    """The groups of one executor."""

    def __init__(self, *, wanted: bool) -> None:
        self._home: Home | None = cgroups.find_home() if wanted else None
        self._count = 0
        if self._home is not None:
            cgroups.sweep(self._home)

    async def bound(self, holder: Tree, memory: int | None) -> Kills | None:
        """Bound the memory of a tree for its next run; return what counts its kills, or None if nothing does."""
        if self._home is None or (memory is None and holder.group is None):
            return None
        await asyncio.wait([holder.started, holder.gone], return_when=asyncio.FIRST_COMPLETED)
        if holder.pid is None:
            return None
        in_thread = asyncio.get_running_loop().run_in_executor
        if holder.group is None:
            self._count += 1
            made = await in_thread(None, _group_for, self._home, self._count, holder.pid)
            if made is None:
                return None
            holder.group = made
            holder.gone.add_done_callback(lambda _: in_thread(None, made.remove))
        group = holder.group
        await in_thread(None, group.bound, memory)
        before = group.kills()
        return lambda: group.kills() - before


def _group_for(home: Home, number: int, root: int) -> Group | None:
    """Make a group, and move a tree into it; None if that cannot be done."""
    group = cgroups.group_of(home, number)
    try:
        group.make()
        group.take_in(root)
        for pid in tree.descendants(root):  # a child that is not seen by now was started from within
            group.take_in(pid)
    except OSError:
        group.remove()
        return None
    return group

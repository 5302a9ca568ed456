"""What the workers get to do: each load is one lane of jobs that look like real ones, and do nothing."""

from typing import Final, NamedTuple

import msgspec

from bench.jobs import ONE_LANE, LaneName, Make, in_lanes
from tidewheel.model.job import JobSpec
from tidewheel.tasks.definition import COMMAND

WARM: Final = "warm"
"""The tenant of jobs that are not measured."""


class Load(NamedTuple):
    """Jobs of one lane."""

    lane: LaneName
    make: Make
    warm: int
    """How many of them warm a worker up."""

    def of_tenant(self, tenant: str) -> "Load":
        """Return the same jobs for someone else."""

        def make(count: int, first: int) -> list[JobSpec]:
            return [msgspec.structs.replace(spec, tenant=tenant) for spec in self.make(count, first)]

        return Load(self.lane._replace(tenant=tenant), make, self.warm)


def _tasks(kind: str, warm: int) -> Load:
    lane = LaneName(kind, ONE_LANE[0].tenant)
    return Load(lane, in_lanes([lane]), warm)


def _commands(count: int, first: int) -> list[JobSpec]:
    lane = LaneName(COMMAND, ONE_LANE[0].tenant)
    return [msgspec.structs.replace(spec, args={"argv": ["/bin/true"]}) for spec in in_lanes([lane])(count, first)]


INLINE: Final = _tasks(ONE_LANE[0].kind, 500)
"""Async functions."""
LOGS: Final = _tasks("mail.log", 500)
"""Async functions that log ten lines."""
LOGS_TO_NOBODY: Final = _tasks("mail.log_to_nobody", 500)
"""The same lines by the same logging to a handler that drops them."""
PRINTS: Final = _tasks("mail.print", 500)
PRINTS_TO_NOBODY: Final = _tasks("mail.print_to_nobody", 500)
"""The same lines printed, and printed to /dev/null."""
STAMPS: Final = _tasks("mail.stamp", 500)
"""Async functions that return when they began, in seconds since the epoch."""
PROCESS: Final = _tasks("mail.render", 100)
"""Plain functions, in processes of a pool."""
LINGERERS: Final = _tasks("mail.linger", 0)
"""Plain functions that do not end, and may be paused."""
HURRIERS: Final = _tasks("mail.hurry", 10)
"""Plain functions that return when they began."""
COMMANDS: Final = Load(LaneName(COMMAND, ONE_LANE[0].tenant), _commands, 20)
"""Executables, each in a sandbox of its own."""

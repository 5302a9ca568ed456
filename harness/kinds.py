"""The kinds of jobs of a chaos run: each body under its name, with the options that its fault asks for."""

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness import bodies, witness
from tidewheel.model.job import JobSpec, Options
from tidewheel.model.resources import Needs
from tidewheel.model.retry import RetryPolicy
from tidewheel.tasks.definition import COMMAND, Isolation

SHORT: Final = timedelta(seconds=3)
"""A timeout that a test can wait for."""
LONG: Final = timedelta(minutes=5)
SOON: Final = RetryPolicy(max_attempts=5, backoff="fixed", delay=timedelta(milliseconds=200), jitter="none")
NEVER: Final = RetryPolicy(max_attempts=1)
SMALL: Final = {"memory": 128 * 1024 * 1024}


class Kind(NamedTuple):
    """One kind: its body, None for a command, and how its jobs are run.

    Tasks run behind the usual walls, as those of a user would; evidence is left in memory, where they may write.
    """

    body: Callable[..., Any] | None
    timeout: timedelta = LONG
    retry: RetryPolicy = SOON
    resources: Mapping[str, int] = {}
    isolation: Isolation | None = None
    """None for what the body's way of running brings with it."""


KINDS: Final[Mapping[str, Kind]] = {
    "quick": Kind(bodies.quick),
    "doze": Kind(bodies.doze),
    "block": Kind(bodies.block, SHORT, NEVER),
    "cling": Kind(bodies.cling, SHORT, NEVER),
    "kill_runner": Kind(bodies.kill_runner),
    "nap": Kind(bodies.nap),
    "stumble": Kind(bodies.stumble),
    "obey": Kind(bodies.obey),
    "ignore": Kind(bodies.ignore, SHORT, NEVER),
    "spin": Kind(bodies.spin, SHORT, NEVER),
    "kill_parent": Kind(bodies.kill_parent, isolation="none"),
    "fork_bomb": Kind(bodies.fork_bomb, SHORT, NEVER),
    "hog": Kind(bodies.hog, LONG, NEVER, SMALL),
    "flood": Kind(bodies.flood),
    "spawn_daemon": Kind(bodies.spawn_daemon, SHORT, NEVER),
    "abandon_daemon": Kind(bodies.abandon_daemon),
    COMMAND: Kind(None),
}


def spec_of(kind: str, folder: Path, key: str, args: Mapping[str, Any], **wishes: Any) -> JobSpec:
    """Return what to submit for a job that leaves its evidence in a folder; `wishes` are further fields of a spec."""
    known = KINDS[kind]
    given = command_args(folder, args["seconds"]) if known.body is None else {"folder": str(folder), **args}
    return JobSpec(
        kind=kind,
        args=given,
        needs=Needs(resources=known.resources),
        options=Options(timeout=known.timeout, retry=known.retry),
        idempotency_key=key,
        **wishes,
    )


def command_args(folder: Path, seconds: float) -> dict[str, Any]:
    """Return the arguments of a command that ticks for a while."""
    return {"argv": [sys.executable, witness.__file__, str(folder), str(seconds)]}

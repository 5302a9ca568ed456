"""The app that the workers of a chaos run load."""

import os

from harness.kinds import KINDS
from tidewheel import App  # type: ignore[attr-defined]

app = App(os.environ["TIDE_CHAOS_DATABASE"])
for _name, _kind in KINDS.items():
    if _kind.body is not None:
        # The evidence is written outside the scratch directory, which only a task without walls may do.
        app.task(name=_name, timeout=_kind.timeout, retry=_kind.retry, needs=_kind.needs, isolation="none")(_kind.body)

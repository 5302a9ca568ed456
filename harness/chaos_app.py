"""The app that the workers of a chaos run load."""

import os
from typing import Any

from harness.kinds import KINDS
from tidewheel import App

app = App(os.environ["CHAOS_DATABASE"])
for _name, _kind in KINDS.items():
    _options: dict[str, Any] = {"name": _name, "timeout": _kind.timeout, "retry": _kind.retry}
    if _kind.resources:
        _options["resources"] = _kind.resources
    if _kind.isolation is not None:
        _options["isolation"] = _kind.isolation
    if _kind.body is not None:
        app.task(**_options)(_kind.body)

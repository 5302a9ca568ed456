"""What tasks an app has, for processes that must not load it."""

import socket
from collections.abc import Mapping
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.executors.launching import LauncherOptions, start_launcher
from tidewheel.worker.launcher.messages import MAX_MESSAGE, Loaded, Report, Unloadable

_PATIENCE: Final = 60.0


def describe(app: str, environment: Mapping[str, str] | None = None) -> list[CatalogueEntry]:
    """Load an app once in a process of its own, and return its catalogue or raise `Invalid` with the reason."""
    ours, process = start_launcher(LauncherOptions(app=app, environment=environment or {}))
    try:
        ours.settimeout(_PATIENCE)
        return _catalogue(ours, app)
    except TimeoutError:
        raise Invalid("app", f"{app} did not load within {_PATIENCE:.0f} seconds") from None
    finally:
        ours.close()
        process.kill()
        process.wait()


def _catalogue(ours: socket.socket, app: str) -> list[CatalogueEntry]:
    tasks: list[CatalogueEntry] = []
    while data := ours.recv(MAX_MESSAGE):
        match msgspec.json.decode(data, type=Report):
            case Loaded() as loaded:
                tasks += loaded.tasks
                if loaded.complete:
                    return tasks
            case Unloadable() as refused:
                raise Invalid(refused.field, refused.why)
    raise Invalid("app", f"the process that loads {app} died")

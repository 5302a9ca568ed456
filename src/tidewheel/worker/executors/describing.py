"""What tasks an app has, for processes that must not load it."""

from collections.abc import Mapping

from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.executors.launching import Launcher, LauncherOptions


async def describe(app: str, environment: Mapping[str, str] | None = None) -> list[CatalogueEntry]:
    """Load an app once in a process of its own, and return its catalogue or raise `Invalid` with the reason."""
    launcher = await Launcher.open(LauncherOptions(app=app, environment=environment or {}))
    await launcher.close()
    return launcher.catalogue

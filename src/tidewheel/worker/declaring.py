"""At the start of a worker the schedules that its app declares are made, or changed to what its code says."""

import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from tidewheel.model.schedule import Declared, ScheduleSpec
from tidewheel.store.scheduling import ScheduleStore
from tidewheel.tasks.registry import CatalogueEntry

_read: Final = msgspec.json.Decoder(ScheduleSpec).decode
_log = logging.getLogger(__name__)


async def declare(store: ScheduleStore, app: str, catalogue: Sequence[CatalogueEntry]) -> Declared:
    """Declare the schedules of an app, and report what that changed or could not."""
    told = await store.declare_schedules(app, [_read(entry.schedule) for entry in catalogue if entry.schedule])
    for word, names in (("made", told.created), ("changed", told.changed)):
        if names:
            _log.info("schedules %s: %s", word, ", ".join(names))
    if told.orphaned:
        left = ", ".join(told.orphaned)
        _log.warning("schedules that %s declares no more go on until someone deletes them: %s", app, left)
    if told.refused:
        not_made = ", ".join(told.refused)
        _log.error("schedules not made, for their names belong to others or they would never fire: %s", not_made)
    return told

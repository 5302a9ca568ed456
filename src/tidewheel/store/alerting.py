"""What every store promises about alerts. The rules of `store.base` hold here, too."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from tidewheel.model.alert import (
    KEEP_RESOLVED,
    Alert,
    AlertFacts,
    AlertState,
    Finding,
    QueueFact,
    TableFact,
    Window,
    WindowSpec,
)


class AlertStore(Protocol):
    """For operators, and for the duty that watches."""

    async def alert_facts(self) -> AlertFacts:
        """Return the numbers that the rules of `model.alert` judge, as of now."""
        ...

    async def alert_gaps(self) -> list[str]:
        """Say in words which facts this database, or this user of it, does not give: rules find nothing there."""
        ...

    async def queue_waits(self) -> list[QueueFact]:
        """Return how long the first due job of each queue waits, as among the facts for alerts."""
        ...

    async def table_facts(self) -> list[TableFact]:
        """Return how many rows of the larger tables are dead, as among the facts for alerts; none if none can be."""
        ...

    async def keep_alerts(self, findings: Sequence[Finding]) -> int:
        """Note all that is wrong now: what is new fires, what is not among it is resolved; return how many turned.

        Each is an event in the same transaction. Of two who note the same at once, one does. Rules that a maintenance
        window mutes stay as they are.
        """
        ...

    async def alerts(
        self, *, tenant: str | None = None, state: AlertState | None = None, limit: int = 100
    ) -> list[Alert]:
        """Return alerts, newest first; with a tenant, its own."""
        ...

    async def acknowledge(self, alert_id: UUID, by: str, *, tenant: str | None = None) -> Alert:
        """Note that someone looks after an alert; the first stays. Raises NotFound."""
        ...

    async def add_window(self, spec: WindowSpec) -> Window:
        """Let rules be silent for a time. Raises Invalid."""
        ...

    async def windows(self) -> list[Window]:
        """Return the maintenance windows that are not over, the next first."""
        ...

    async def remove_window(self, window_id: UUID) -> None:
        """Remove a maintenance window. Raises NotFound."""
        ...

    async def retire_alerts(self, *, keep: timedelta = KEEP_RESOLVED, limit: int = 1000) -> int:
        """Forget alerts that were resolved so long ago, and windows that were over; return how many."""
        ...

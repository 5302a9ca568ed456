"""What every store promises about gates.

The rules of `store.base` hold here, too.
"""

from typing import Protocol
from uuid import UUID

from tidewheel.model.gate import Gate, GateSpec


class GateStore(Protocol):
    """For operators, and for the keeper."""

    async def close_gate(self, spec: GateSpec) -> Gate:
        """Close a gate on a kind, queue or tenant (or a combination); replaces the one on just the same.

        In effect at the next claim. Moves no job: it is a flag on lanes, also on lanes that appear later. Jobs behind a
        slow gate start no faster than its rate over all claimers together, apart from a tenth of a second that it saves
        up; a claim that was held up by it tells as `next_due` when it is worth looking again.

        `stop_running` asks what runs behind it to stop, as `cancel` does. Behind a gate that drops it is cancelled.
        Behind one that holds it is given back: any end but a success makes it `queued` and counts nothing. A claim that
        was under way when the gate closed is caught by `tend_gates`. Raises Invalid, also for an expiry that has
        passed by the clock of the store.
        """
        ...

    async def open_gate(self, gate_id: UUID, *, version: int | None = None) -> None:
        """Remove a gate; lanes behind no other one are open at the next claim, in their old order. Raises NotFound.

        Runs that it asked to stop still do. With a `version` (see `model.version`) it raises StaleVersion if the gate
        has another one.
        """
        ...

    async def gates(self) -> list[Gate]:
        """Return the closed gates, oldest first."""
        ...

    async def tend_gates(self) -> int:
        """Open the gates that have expired, and ask again what runs behind those that say so to stop.

        Returns how many gates were opened and runs asked.
        """
        ...

"""The duty that watches: numbers are judged by the rules, and what turned is noted and told."""

from tidewheel.model.alert import find
from tidewheel.model.alert_bounds import USUAL, Bounds
from tidewheel.store.alerting import AlertStore


class Watch:
    """Done twice at once, one of the two notes what turned."""

    def __init__(self, store: AlertStore, bounds: Bounds = USUAL) -> None:
        self._store = store
        self._bounds = bounds

    async def run_once(self) -> int:
        """Look at everything once; return how many alerts fired or were resolved."""
        return await self._store.keep_alerts(find(await self._store.alert_facts(), self._bounds))

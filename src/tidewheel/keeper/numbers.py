"""The numbers of a keeper."""

from collections.abc import Mapping

from tidewheel.keeper.keeper import Keeper
from tidewheel.observe import Registry
from tidewheel.observe.catalogue import CHORE_ITEMS, CHORE_SECONDS, CHORES, LEADER

Values = Mapping[tuple[str, ...], float]


def show_chores(keeper: Keeper, registry: Registry) -> None:
    """Let a registry show what a keeper has done, and what its duties are."""

    def runs() -> Values:
        found: dict[tuple[str, ...], float] = {}
        for name, one in keeper.records.items():
            found |= {(name, "ok"): one.runs - one.errors, (name, "error"): one.errors}
        return found

    registry.gauge(CHORES, runs)
    registry.gauge(CHORE_SECONDS, lambda: {(name,): one.total_seconds for name, one in keeper.records.items()})
    registry.gauge(CHORE_ITEMS, lambda: {(name,): float(one.done) for name, one in keeper.records.items()})
    registry.gauge(LEADER, lambda: {(name,): float(name in keeper.duties) for name in keeper.records})

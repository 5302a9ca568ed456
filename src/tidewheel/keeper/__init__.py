"""The keeper: chores that no job may depend on a person for, each done by one node at a time."""

from tidewheel.keeper.chores import Chore, chores_of
from tidewheel.keeper.keeper import Keeper
from tidewheel.keeper.occurrences import Occurrences
from tidewheel.keeper.reaper import Reaper

__all__ = ["Chore", "Keeper", "Occurrences", "Reaper", "chores_of"]

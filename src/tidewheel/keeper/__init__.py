"""The keeper: chores that no job may depend on a person for, each done by one node at a time."""

from tidewheel.keeper.chores import Chore, chore_named, chores_of
from tidewheel.keeper.keeper import Keeper
from tidewheel.keeper.numbers import show_chores
from tidewheel.keeper.occurrences import Occurrences
from tidewheel.keeper.reaper import Reaper
from tidewheel.keeper.record import ChoreRecord

__all__ = ["Chore", "ChoreRecord", "Keeper", "Occurrences", "Reaper", "chore_named", "chores_of", "show_chores"]

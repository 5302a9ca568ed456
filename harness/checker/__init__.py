"""Says from what was recorded whether anything was lost or overlapped. Pure: records in, violations out.

The scheduler is no witness of its own promises: what ran is known from files that the tasks themselves wrote, what was
promised from the client's log, what died from the harness, and only how it all ended from the store.
"""

from harness.checker.check import RULES, check
from harness.checker.figures import Figures, Vacuous, measure, require
from harness.checker.history import History, Violation
from harness.checker.intervals import Execution, overlaps
from harness.checker.lateness import Lateness, lateness

__all__ = [
    "RULES",
    "Execution",
    "Figures",
    "History",
    "Lateness",
    "Vacuous",
    "Violation",
    "check",
    "lateness",
    "measure",
    "overlaps",
    "require",
]

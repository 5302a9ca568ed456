"""A whole run, with its records sorted by what the rules ask for."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, TypeVar

import msgspec

from harness.checker import records
from harness.checker.intervals import Execution, deaths_by_pid, executions
from harness.checker.records import Cancel, Record, Submit

T = TypeVar("T")

FINAL_STATES: Final = frozenset({"succeeded", "dead", "cancelled", "expired", "dropped", "skipped"})


class Violation(msgspec.Struct, frozen=True):
    """A promise that was broken."""

    rule: str
    subject: str
    """The job, key or process that it is about."""
    why: str

    def __str__(self) -> str:
        return f"{self.rule} {self.subject}: {self.why}"


class History:
    """What was recorded in one run, and the tolerances that it is judged with."""

    def __init__(
        self,
        recorded: Iterable[Record],
        *,
        deadline: float = 60.0,
        grace: float = 5.0,
        clock_error: float = 0.0,
        max_losses: int = 3,
    ) -> None:
        """Take the records in any order.

        `deadline`: by how much after healing every job must have ended. `grace`: how long a run may go on after its
        cancellation was answered with `cancelling`. `clock_error`: how far the store's instants may be off after they
        were put on the host's clock.
        """
        self.deadline = deadline
        self.grace = grace
        self.clock_error = clock_error
        self.max_losses = max_losses
        self._recorded: Sequence[Record] = tuple(recorded)

    def of(self, kind: type[T]) -> list[T]:
        """Return the records of one type."""
        return [record for record in self._recorded if isinstance(record, kind)]

    @cached_property
    def executions(self) -> dict[str, list[Execution]]:
        """The executions of each job, in the order of their beginnings."""
        by_job: dict[str, list[Execution]] = {}
        for run in executions(self.of(records.Witness), deaths_by_pid(self.of(records.Death))):
            by_job.setdefault(run.job, []).append(run)
        for runs in by_job.values():
            runs.sort(key=lambda run: (run.first, run.last))
        return by_job

    @cached_property
    def finals(self) -> dict[str, records.Final]:
        """The jobs as they ended."""
        return {final.job: final for final in self.of(records.Final)}

    @cached_property
    def submits(self) -> dict[str, list[Submit]]:
        """What was said about each key, in time."""
        return _grouped(self.of(Submit))

    @cached_property
    def acknowledged(self) -> dict[str, str]:
        """Each job that the client was told of, with its key."""
        return {submit.job: submit.key for submit in self.of(Submit) if submit.phase == "ok" and submit.job is not None}

    @cached_property
    def cancels(self) -> dict[str, list[Cancel]]:
        """The acknowledged cancels of each job, first to last."""
        by_job: dict[str, list[Cancel]] = {}
        for cancel in sorted(self.of(Cancel), key=lambda cancel: cancel.t):
            if cancel.phase == "ok":
                by_job.setdefault(cancel.job, []).append(cancel)
        return by_job

    @cached_property
    def cancel_asked(self) -> frozenset[str]:
        """The jobs that anyone tried to cancel, whatever the answer."""
        return frozenset(cancel.job for cancel in self.of(Cancel))

    @cached_property
    def healed(self) -> float | None:
        """When the last fault was over; None if that was never said."""
        return max((healed.t for healed in self.of(records.Healed)), default=None)

    def winner(self, final: records.Final) -> Execution | None:
        """Return the execution whose result was accepted, if any was witnessed."""
        runs = [run for run in self.executions.get(final.job, ()) if run.token == final.token]
        return max(runs, key=lambda run: run.ok, default=None)


def _grouped(submits: Iterable[Submit]) -> dict[str, list[Submit]]:
    by_key: dict[str, list[Submit]] = {}
    for submit in sorted(submits, key=lambda submit: submit.t):
        by_key.setdefault(submit.key, []).append(submit)
    return by_key

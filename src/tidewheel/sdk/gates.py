"""The gates of an app's store: closing, opening and listing them. Each has an async form and a synchronous twin."""

import re
from datetime import datetime
from typing import Final, TypedDict, Unpack
from uuid import UUID

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown
from tidewheel.model.gate import Gate, GateMode, GateSpec
from tidewheel.model.guessing import did_you_mean
from tidewheel.sdk.desk import Desk
from tidewheel.tasks.durations import Duration, parse_duration

_RATE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*/\s*(s|m|h|d)").fullmatch
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class GateOptions(TypedDict, total=False):
    """On what a gate is closed, why, and for how long."""

    kind: str
    queue: str
    tenant: str
    reason: str
    author: str
    lasts: Duration
    """It opens by itself after that; or at `expires_at`."""
    expires_at: datetime


class Gates:
    """Switches on all jobs of a kind, a queue or a tenant, or of a combination of these."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def ahold(self, *, stop_running: bool = False, **options: Unpack[GateOptions]) -> Gate:
        """Let no job start; with `stop_running`, what runs is asked to stop and given back, uncounted."""
        return await self._close(GateMode.HOLD, options, stop_running=stop_running)

    async def adrop(self, *, stop_running: bool = False, **options: Unpack[GateOptions]) -> Gate:
        """Let no job start and drop those that wait; with `stop_running`, what runs is cancelled."""
        return await self._close(GateMode.DROP, options, stop_running=stop_running)

    async def aslow(self, rate: float | str, **options: Unpack[GateOptions]) -> Gate:
        """Let jobs start no faster than the rate, all workers together: 10 a second, or `"100/m"`."""
        return await self._close(GateMode.SLOW, options, rate=parse_rate(rate))

    async def aopen(self, gate: Gate | UUID) -> None:
        """Open a gate. Raises NotFound if it is open already."""
        gate_id = _id_of(gate)
        await self._desk.use(lambda store: store.open_gate(gate_id))

    async def alist(self) -> list[Gate]:
        """Return the closed gates, oldest first."""
        return await self._desk.use(lambda store: store.gates())

    # The synchronous twins

    def hold(self, *, stop_running: bool = False, **options: Unpack[GateOptions]) -> Gate:
        """Let no job start; with `stop_running`, what runs is asked to stop and given back, uncounted."""
        return self._desk.run(self.ahold(stop_running=stop_running, **options))

    def drop(self, *, stop_running: bool = False, **options: Unpack[GateOptions]) -> Gate:
        """Let no job start and drop those that wait; with `stop_running`, what runs is cancelled."""
        return self._desk.run(self.adrop(stop_running=stop_running, **options))

    def slow(self, rate: float | str, **options: Unpack[GateOptions]) -> Gate:
        """Let jobs start no faster than the rate, all workers together: 10 a second, or `"100/m"`."""
        return self._desk.run(self.aslow(rate, **options))

    def open(self, gate: Gate | UUID) -> None:
        """Open a gate. Raises NotFound if it is open already."""
        self._desk.run(self.aopen(gate))

    def list(self) -> list[Gate]:
        """Return the closed gates, oldest first."""
        return self._desk.run(self.alist())

    async def _close(
        self, mode: GateMode, options: GateOptions, *, rate: float | None = None, stop_running: bool = False
    ) -> Gate:
        _check_known(options)
        spec = GateSpec(
            mode=mode,
            kind=options.get("kind"),
            queue=options.get("queue"),
            tenant=options.get("tenant"),
            reason=options.get("reason", ""),
            author=options.get("author", ""),
            lasts=parse_duration(options["lasts"], "lasts") if "lasts" in options else None,
            expires_at=options.get("expires_at"),
            rate=rate,
            stop_running=stop_running,
        )
        return await self._desk.use(lambda store: store.close_gate(spec))


def _check_known(options: GateOptions) -> None:
    """Refuse what a gate does not know: with a tenant that was mistyped it would close on those of all."""
    known = GateOptions.__annotations__
    if unknown := sorted(options.keys() - known.keys()):
        hint = did_you_mean(unknown[0], known)
        raise Invalid(unknown[0], f"is no option of a gate; there are {', '.join(sorted(known))}{hint}")


def _id_of(gate: object) -> UUID:
    if isinstance(gate, Gate):
        return gate.id
    if not isinstance(gate, UUID):
        raise Invalid("gate", f"must be a gate or its id, a UUID, not {shown(gate)}")
    return gate


def parse_rate(rate: float | str, field: str = "rate") -> float:
    """Return how many a second a number, or a text such as `10/s`, `100/m` or `5/h`, stands for."""
    if not isinstance(rate, str):
        return rate
    found = _RATE(rate.strip())
    if found is None:
        raise Invalid(field, f"must be a number of jobs a second, or a text such as 100/m, not {rate[:40]!r}")
    return float(found[1]) / _SECONDS[found[2]]

"""The suite of rivals: Tidewheel and other queues, one machine, one way of measuring, in turns."""

import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

from bench.grounds.files import file_system
from bench.grounds.postgres import PostgresGround, postgres_ground
from bench.measure import Figures, quantile, say, spread
from bench.report import Row, machine
from bench.rivals.contest import Run, run_once
from bench.rivals.contestants import CONTESTANTS, Contestant
from bench.rivals.environment import NoRival, interpreter, pinned
from bench.rivals.redis import SETTINGS, redis
from bench.rivals.sizes import SIZES, Sizes

STORE: Final = "several"


@dataclass(frozen=True, kw_only=True)
class Rivals:
    """What can be asked for is a contestant, not a store; each has its own."""

    help: str
    parts: Mapping[str, Contestant]
    sizes: Mapping[str, Sizes]
    rows: Sequence[Row]
    stores: Sequence[str] = (STORE,)

    async def measure(self, store: str, size: str, parts: Sequence[str]) -> Figures:
        """Measure the contestants in turns, and return all figures as one flat object."""
        begun, sizes = time.perf_counter(), self.sizes[size]
        async with AsyncExitStack() as opened:
            contest = _Contest({name: self.parts[name] for name in parts}, sizes, opened)
            await contest.hold()
            figures: Figures = {"store": store, **contest.figures(), "sizes": asdict(sizes), **machine()}
            figures |= contest.facts
        return {**figures, "seconds": {"all": round(time.perf_counter() - begun, 1)}}


@dataclass
class _Contest:
    """Rounds, what came out of them, and who could not take part."""

    contestants: Mapping[str, Contestant]
    sizes: Sizes
    opened: AsyncExitStack
    runs: dict[str, list[Run]] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    pythons: dict[str, Path] = field(default_factory=dict)
    """Each has its own, but for ours."""
    postgres: PostgresGround | None = None

    async def hold(self) -> None:
        """Run all rounds that the time allows: there and back, so that what disturbs the machine disturbs all."""
        self.postgres = await self._server()
        self.pythons = self._pythons_of_all()
        begun = time.perf_counter()
        for number in range(self.sizes.rounds):
            spent = time.perf_counter() - begun
            if number and spent * (number + 1) / number > self.sizes.at_most_seconds:
                say(f"no time for round {number + 1}")
                break
            order = list(self.contestants)
            for name in order if number % 2 == 0 else reversed(order):
                await self._measure(name, number)

    async def _server(self) -> PostgresGround | None:
        if all(contestant.on != "postgres" for contestant in self.contestants.values()):
            return None
        ground = await self.opened.enter_async_context(postgres_ground())
        self.facts |= ground.facts
        return ground

    def _pythons_of_all(self) -> dict[str, Path]:
        """Return the Python of each, and note who cannot be had; before the clock starts."""
        pythons = {}
        for name, contestant in self.contestants.items():
            try:
                package = contestant.package
                pythons[name] = interpreter(package, contestant.extras) if package else Path(sys.executable)
            except NoRival as reason:
                self.unmeasured[name] = str(reason)
        return pythons

    async def _measure(self, name: str, number: int) -> None:
        if name in self.unmeasured:
            return
        contestant = self.contestants[name]
        try:
            async with self._place(contestant) as url:
                run = await run_once(contestant, self.pythons[name], url, self.sizes)
        except (NoRival, RuntimeError, TimeoutError) as error:
            self.unmeasured[name] = str(error) or type(error).__name__
            say(f"{name}: {self.unmeasured[name]}")
            return
        self.runs.setdefault(name, []).append(run)
        p50 = 1000 * statistics.median(run.waits)
        say(f"{number + 1}/{self.sizes.rounds} {name}: {run.rate:,.0f} jobs/s, pick-up {p50:.1f} ms")

    @asynccontextmanager
    async def _place(self, contestant: Contestant) -> AsyncIterator[str]:
        """Give the URL of an empty place."""
        if contestant.on == "redis":
            self.facts |= {f"redis_{setting}": value for setting, value in SETTINGS.items() if value}
            async with redis() as url:
                yield url
        elif contestant.on == "postgres":
            assert self.postgres is not None
            async with self.postgres.database() as url:
                yield url
        else:
            with tempfile.TemporaryDirectory(prefix="tide-bench-") as folder:
                self.facts |= {"sqlite_data_on": file_system(Path(folder))}
                file = Path(folder) / "queue.db"
                yield str(file) if contestant.package else f"sqlite:///{file}"

    def figures(self) -> Figures:
        measured = {name: runs for name, runs in self.runs.items() if name not in self.unmeasured}
        figures: Figures = {}
        for name, runs in measured.items():
            figures |= _figures(name, self.contestants[name], runs)
        return {**figures, "unmeasured": self.unmeasured}


def _figures(name: str, contestant: Contestant, runs: Sequence[Run]) -> Figures:
    rates = [run.rate for run in runs]
    halves = [1000 * statistics.median(run.waits) for run in runs]
    waits = [1000 * wait for run in runs for wait in run.waits]
    calls = [1000 * call for run in runs for call in run.calls]
    return {
        f"{name}_drain_per_s": round(statistics.median(rates)),
        f"{name}_drain_per_s_spread": spread(rates),
        f"{name}_start_ms_p50": round(statistics.median(halves), 3),
        f"{name}_start_ms_p50_spread": [round(min(halves), 3), round(max(halves), 3)],
        f"{name}_start_ms_p99": round(quantile(waits, 0.99), 3),
        f"{name}_submit_ms_p50": round(statistics.median(calls), 3),
        f"{name}_rounds": len(runs),
        f"{name}_processes": [run.processes for run in runs],
        f"{name}_version": pinned(contestant.package) if contestant.package else metadata.version("tidewheel"),
        f"{name}_keeps": contestant.keeps,
        f"{name}_settings": contestant.settings,
    }


def _rows(name: str, contestant: Contestant) -> tuple[Row, ...]:
    return (
        Row(f"{name}_drain_per_s", f"{contestant.title}, jobs/s"),
        Row(f"{name}_start_ms_p50", "  from the acknowledgement to the body, p50, ms"),
        Row(f"{name}_start_ms_p99", "  p99, ms"),
        Row(f"{name}_submit_ms_p50", "  from the call to the acknowledgement, p50, ms"),
    )


RIVALS: Final = Rivals(
    help="Tidewheel's workers beside other queues, in turns on this machine",
    parts=CONTESTANTS,
    sizes=SIZES,
    rows=tuple(row for name, contestant in CONTESTANTS.items() for row in _rows(name, contestant)),
)

"""Faults, each one a coroutine that breaks something, waits, and lets it go; and the one who picks them by a seed."""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import psutil

from harness.arena import Arena
from harness.cluster import LEASE, WorkerProcess
from harness.processes import Process, Role, look_at

PAUSED: Final = 3 * LEASE
"""How long something is stopped: long enough for others to take over whatever it had."""
DRAIN: Final = 30.0

Fault = Callable[[Arena, random.Random], Awaitable[None]]


def killing(role: Role) -> Fault:
    """Return the fault that kills one process of a worker."""

    async def fault(arena: Arena, rng: random.Random) -> None:
        if (worker := _some_worker(arena, rng)) and (parts := worker.parts(role)):
            with arena.journal.fault(f"kill {role}"):
                arena.cluster.kill([rng.choice(parts)], role)
                await asyncio.sleep(rng.uniform(0.0, 1.0))
            arena.restore()

    return fault


async def kill_tree(arena: Arena, rng: random.Random) -> None:
    """Kill a worker with all that is below it, as the end of its container would."""
    if worker := _some_worker(arena, rng):
        with arena.journal.fault("kill tree"):
            arena.cluster.kill(worker.tree(), "tree")
            await asyncio.sleep(rng.uniform(0.0, 1.0))
        arena.restore()


def stopping(role: Role) -> Fault:
    """Return the fault that stops one process of a worker alone."""

    async def fault(arena: Arena, rng: random.Random) -> None:
        if (worker := _some_worker(arena, rng)) and (parts := worker.parts(role)):
            await paused(arena, f"stop {role}", [rng.choice(parts)])

    return fault


async def stop_tree(arena: Arena, rng: random.Random) -> None:
    """Stop a whole worker, as a host that hangs does."""
    if worker := _some_worker(arena, rng):
        await paused(arena, "stop tree", worker.tree())


async def paused(arena: Arena, name: str, victims: Sequence[Process], seconds: float = PAUSED) -> None:
    """Stop processes for a while; those that live then go on."""
    with arena.journal.fault(name):
        arena.cluster.freeze(victims)
        await asyncio.sleep(seconds)
        arena.cluster.signal(victims, signal.SIGCONT)
    arena.restore()


async def drain(arena: Arena, rng: random.Random) -> None:
    """Ask a worker to end, as a deploy does, and start another."""
    if worker := _some_worker(arena, rng):
        with arena.journal.fault("drain"):
            arena.cluster.signal([worker.supervisor], signal.SIGTERM)
            await _gone(worker)
        arena.restore()


async def _gone(worker: WorkerProcess) -> None:
    for _ in range(int(DRAIN / 0.1)):
        if not worker.running:
            return
        await asyncio.sleep(0.1)


async def kill_server(arena: Arena, rng: random.Random) -> None:
    """Kill a server with all that is below it, and start another on its port."""
    if arena.servers is not None and (running := arena.servers.running):
        with arena.journal.fault("kill server"):
            arena.cluster.kill(rng.choice(running).tree(), "server")
            await asyncio.sleep(rng.uniform(0.0, 1.0))
        arena.restore()


async def kill_postgres(arena: Arena, rng: random.Random) -> None:
    """Let the database die as if its machine lost power, and come back."""
    if (server := arena.server) is not None:
        with arena.journal.fault("kill postgres"):
            arena.journal.killed(server.pid, "postgres")
            server.kill()
            await asyncio.sleep(rng.uniform(0.1, 2.0))
            server.start()  # in this thread, for the server ends with the thread that starts it
        arena.restore()


async def hang_postgres(arena: Arena, rng: random.Random) -> None:
    """Stop the database in mid-sentence: nobody is told anything until it goes on."""
    await hung_postgres(arena, rng.uniform(1.0, PAUSED))


async def hung_postgres(arena: Arena, seconds: float) -> None:
    """Stop the database for so long."""
    if arena.server is not None:
        top = psutil.Process(arena.server.pid)
        top.suspend()  # first, so that it forks no further child while we count them
        found = [look_at(process.pid) for process in (*top.children(recursive=True), top)]
        await paused(arena, "hang postgres", [process for process in found if process is not None], seconds)


COMMON: Final[Sequence[tuple[Fault, int]]] = (
    (killing("supervisor"), 3),
    (killing("runner"), 3),
    (killing("host"), 2),
    (killing("launcher"), 2),
    (killing("task"), 3),
    (kill_tree, 1),
    (stopping("supervisor"), 1),
    (stopping("runner"), 1),
    (stopping("host"), 1),
    (stopping("task"), 1),
    (stop_tree, 2),
    (drain, 2),
)
OF_POSTGRES: Final[Sequence[tuple[Fault, int]]] = ((kill_postgres, 3), (hang_postgres, 1))
OF_SERVERS: Final[Sequence[tuple[Fault, int]]] = ((kill_server, 6),)
"""Faults with how often each is picked."""


class Nemesis:
    """Breaks one thing after the other."""

    def __init__(self, arena: Arena, rng: random.Random) -> None:
        faults = [*COMMON, *(OF_POSTGRES if arena.server is not None else ())]
        faults += OF_SERVERS if arena.servers is not None else ()
        self._arena = arena
        self._rng = rng
        self._faults = [fault for fault, _ in faults]
        self._weights = [weight for _, weight in faults]

    async def rage(self, until: Callable[[], bool]) -> None:
        """Go on until told; then everything that was stopped has been let go."""
        while not until():
            [fault] = self._rng.choices(self._faults, self._weights)
            await fault(self._arena, self._rng)
            await asyncio.sleep(self._rng.uniform(0.5, 3.0))


def _some_worker(arena: Arena, rng: random.Random) -> WorkerProcess | None:
    running = arena.cluster.running
    return rng.choice(running) if running else None

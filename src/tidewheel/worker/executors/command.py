"""Commands: any executable, each in a tree of processes of its own."""

import asyncio
import dataclasses
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Damaged, Invalid, NotFound, TideError
from tidewheel.model.checks import clean_text
from tidewheel.model.outcome import Usage
from tidewheel.tasks.builtin import ARTIFACT, CommandCall, parse_command
from tidewheel.tasks.definition import Isolation
from tidewheel.worker.execution import Away, End, Ended, Execution, Order, Sink, fetching
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.cells import Cell
from tidewheel.worker.executors.groups import Groups
from tidewheel.worker.executors.idle import Idle
from tidewheel.worker.executors.launching import LauncherKeeper, LauncherOptions
from tidewheel.worker.executors.output import Output
from tidewheel.worker.executors.underway import EndedAtOnce, Kills, Underway, end_by_signal, end_of_tree, with_files
from tidewheel.worker.executors.watch import Watch
from tidewheel.worker.floor import check_floor
from tidewheel.worker.launcher.messages import MAX_MESSAGE, BodyEnded, Exited, Program
from tidewheel.worker.sandbox import environment
from tidewheel.worker.sandbox.place import is_as_given

Artifacts = Callable[[str], AbstractAsyncContextManager[Path]]
"""Fetches an artifact by its SHA-256, and keeps it where it is for as long as it is used."""

TAIL: Final = 4 * 1024
"""How much of stdout becomes part of the result."""
_TEMPORARY_FAILURE: Final = 75
_HOPELESS: Final = (Invalid, NotFound, Damaged)
"""What another attempt would find as it is."""
_SLACK: Final = 1 << 30
"""How much private memory each process may have above the bound of its tree, which is watched: a backstop."""


class CommandExecutor:
    """Runs jobs of the kind `command`."""

    def __init__(
        self,
        options: LauncherOptions,
        *,
        clock: Clock,
        directory: Path,
        slots: int,
        least: Isolation,
        artifacts: Artifacts | None = None,
    ) -> None:
        """Run commands behind the layers that they ask for, if these are no less than `least`."""
        self._launchers = LauncherKeeper(dataclasses.replace(options, app=None))  # without the app a fork is cheaper
        self._environment = {**environment.clean(os.environ), **options.environment}
        self._directory = directory
        self._artifacts = artifacts
        self._least = least
        self._watch = Watch(clock)
        self._groups = Groups(wanted=options.grounds.cgroups)
        self._idle: Idle[Cell] = Idle(slots)
        self._cells: set[Cell] = set()
        self._count = 0

    async def open(self) -> None:
        """Start the launcher."""
        await self._launchers.get()

    async def start(self, order: Order, sink: Sink) -> Execution:
        """Begin a run; arguments that make no command end it at once. Raises Away if its artifact cannot be fetched."""
        cell = None
        try:
            command = parse_command(order.args)
            isolation = check_floor(command.isolation or order.isolation, self._least)
            cell = self._idle.take(isolation) or await self._new_cell(isolation)
            program = await self._program(command, order, cell.place.prepare())
            kills = await self._groups.bound(cell.tree, order.memory)
        except (TideError, OSError, Away) as error:
            if cell is not None:
                cell.retire()
            if isinstance(error, Away):
                raise
            end = End.FATAL if isinstance(error, _HOPELESS) else End.ERROR
            return EndedAtOnce(Ended(end=end, message=clean_text(str(error), 2_000)))
        run = Command(command, order, cell, self._watch, kills)
        run.begin(program, sink, self._take_back)
        return run

    async def close(self) -> None:
        """End everything at once."""
        self._watch.close()
        await self._launchers.close()
        await asyncio.gather(*(cell.ended() for cell in self._cells))
        await scratch.settled()

    async def _new_cell(self, isolation: Isolation) -> Cell:
        launcher = await self._launchers.get()
        if isolation == "strict" and launcher.lacking is not None:
            raise Invalid("isolation", f"this worker cannot give strict: {launcher.lacking}")
        self._count += 1
        cell = Cell(launcher, isolation, scratch.Place(self._directory, f"cell-{self._count}"))
        self._cells.add(cell)
        cell.at_end(self._cells.discard)
        return cell

    def _take_back(self, cell: Cell) -> None:
        if cell.is_usable:
            self._idle.keep(cell)
        else:
            cell.retire()

    async def _program(self, command: CommandCall, order: Order, directory: str) -> Program:
        argv = command.argv
        if command.artifact is not None:
            artifact = await self._fetch(command.artifact, directory)
            argv = [artifact if word == ARTIFACT else word for word in argv or [ARTIFACT]]
        program = Program(
            argv=argv,
            env={**self._environment, **_told(order, directory), **_own(command.env)},
            cwd=command.cwd or directory,
            data=None if order.memory is None else order.memory + _SLACK,
        )
        if len(msgspec.json.encode(program)) > MAX_MESSAGE:
            raise Invalid("argv", f"and env must have less than {MAX_MESSAGE} bytes together, as JSON")
        return program

    async def _fetch(self, digest: str, directory: str) -> str:
        """Put a copy of the artifact into the scratch directory: a link would let the task change the original."""
        if self._artifacts is None:
            raise Invalid("artifact", "this worker has nowhere to fetch artifacts from")
        target = f"{directory}/artifact"
        with fetching():
            async with self._artifacts(digest) as source:
                await asyncio.get_running_loop().run_in_executor(None, scratch.copy_executable, source, target)
        return target


class Command(Underway):
    """One command under way."""

    def __init__(self, command: CommandCall, order: Order, cell: Cell, watch: Watch, kills: Kills | None) -> None:
        super().__init__(order, cell, kills)
        self._command = command
        self._cell = cell
        self._watch = watch
        self._outputs = (Output("stdout", tail=TAIL), Output("stderr"))
        self._at_free: Callable[[Cell], None]

    def begin(self, program: Program, sink: Sink, at_free: Callable[[Cell], None]) -> None:
        """Start it, and say when its cell is free."""
        self._at_free = at_free
        for output in self._outputs:
            output.sink = sink
        fds = [_readable(self._command.stdin), *(output.write_end for output in self._outputs)]
        self._cell.begin(program, fds, self)
        self._watch.add(self)

    def left(self, exited: Exited) -> None:
        """Take how the command ended; nothing of it is left."""
        with self.sure_to_end():
            self._hear_out()
            layers = (*exited.layers, *self._cell.tree.layers)
            usage = Usage(cpu_seconds=exited.cpu_seconds, peak_rss_bytes=exited.peak_rss, isolation=layers)
            self._end(self._judge(exited, usage))
            if self.was_disturbed:
                self._cell.retire()
            else:
                self._at_free(self._cell)

    def evicted(self, body: BodyEnded | None) -> None:
        """Take how the cell ended, before the command did."""
        with self.sure_to_end():
            self._hear_out()
            usage = Usage(isolation=self._cell.tree.layers)
            self._end(end_of_tree(body, usage, oom_kills=self.kills or self._watch.recent_oom_kills))

    def _hear_out(self) -> None:
        for output in self._outputs:
            output.drain()
            output.close()

    def _end(self, ended: Ended) -> None:
        self._watch.remove(self)
        place = self._cell.place
        left = None if is_as_given(place.run) else place.set_aside()
        self.finish(with_files(ended, left), left)

    def _judge(self, exited: Exited, usage: Usage) -> Ended:
        if exited.status is None:
            return Ended(end=End.FATAL, message=exited.missing or "", usage=usage)
        by_signal = end_by_signal(exited.status, usage, oom_kills=self.kills or self._watch.recent_oom_kills)
        if by_signal is None and exited.status not in self._command.ok_exit_codes and self.kills and self.kills():
            return Ended(end=End.OOM, message="the kernel killed a process of it for want of memory", usage=usage)
        return by_signal or msgspec.structs.replace(
            self._judge_code(exited.status), exit_code=exited.status, usage=usage
        )

    def _judge_code(self, code: int) -> Ended:
        if code in self._command.ok_exit_codes:
            output = clean_text(self._outputs[0].tail.decode(errors="replace"), TAIL)
            return Ended(end=End.RETURNED, result=msgspec.json.encode({"exit_code": code, "output": output}).decode())
        if code in self._command.fatal_exit_codes:
            return Ended(end=End.FATAL, message=f"exit code {code}, which is fatal for this command")
        if code == _TEMPORARY_FAILURE:
            return Ended(end=End.RETRY, message=f"exit code {code}, a temporary failure")
        return Ended(end=End.ERROR, message=f"exit code {code}")


def _readable(text: str) -> int:
    """Return a descriptor from which a text can be read, without anybody having to write it meanwhile."""
    if not text:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    fd = os.memfd_create("stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(text.encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _own(env: dict[str, str]) -> dict[str, str]:
    """Return what a job may say about its environment: anything but what the worker tells it."""
    return {name: value for name, value in env.items() if not name.startswith("TIDE_")}


def _told(order: Order, directory: str) -> dict[str, str]:
    return environment.of_job(
        job_id=str(order.job_id),
        attempt=order.attempt,
        epoch=order.epoch,
        token=order.token,
        scratch=directory,
        trace=order.trace,
    )

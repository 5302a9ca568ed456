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
from tidewheel.errors import Invalid, TideError
from tidewheel.model.checks import clean_text
from tidewheel.model.outcome import Usage
from tidewheel.tasks.ending import End, Ended
from tidewheel.worker.execution import Execution, Order, Sink
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.command_args import ARTIFACT, CommandArgs, parse_command
from tidewheel.worker.executors.launching import Launcher, LauncherOptions
from tidewheel.worker.executors.output import Output
from tidewheel.worker.executors.underway import EndedAtOnce, Underway, abnormal_end
from tidewheel.worker.executors.watch import Watch
from tidewheel.worker.launcher.messages import MAX_MESSAGE, Program
from tidewheel.worker.sandbox import environment
from tidewheel.worker.sandbox.layers import Confinement
from tidewheel.worker.sandbox.limits import Limits

Artifacts = Callable[[str], AbstractAsyncContextManager[Path]]
"""Fetches an artifact by its SHA-256, and keeps it where it is for as long as it is used."""

TAIL: Final = 4 * 1024
"""How much of stdout becomes part of the result."""
_TEMPORARY_FAILURE: Final = 75
_SLACK: Final = 1 << 30
"""How much private memory each process may have above the bound of its tree, which is watched: a backstop."""
_ROOM: Final = 4 * 1024


class CommandExecutor:
    """Runs jobs of the kind `command`."""

    def __init__(
        self, options: LauncherOptions, *, clock: Clock, directory: Path, artifacts: Artifacts | None = None
    ) -> None:
        self._options = dataclasses.replace(options, app=None)  # without the app a fork is cheaper
        self._places = scratch.Places(directory)
        self._artifacts = artifacts
        self._environment = {**environment.clean(os.environ), **options.environment}
        self._watch = Watch(clock)
        self._launcher: Launcher | None = None
        self._launching = asyncio.Lock()
        self._runs: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Start the launcher."""
        await self._living_launcher()

    async def start(self, order: Order, sink: Sink) -> Execution:
        """Begin a run; arguments that make no command end it at once."""
        directory = None
        try:
            command = parse_command(order.args)
            launcher = await self._living_launcher()
            directory = self._places.take()
            if command.artifact is not None:
                command = await self._with_artifact(command, command.artifact, directory)
            return self._begin(launcher, command, order, sink, directory)
        except (TideError, OSError) as error:
            if directory is not None:
                scratch.remove(directory)
            end = End.FATAL if isinstance(error, Invalid) else End.ERROR
            return EndedAtOnce(Ended(end=end, message=clean_text(str(error), 2_000)))

    async def close(self) -> None:
        """End everything at once."""
        self._watch.close()
        if self._launcher is not None:
            await self._launcher.close()
        await asyncio.gather(*self._runs)
        self._places.close()
        await scratch.settled()

    def _begin(self, launcher: Launcher, command: CommandArgs, order: Order, sink: Sink, directory: str) -> "Command":
        env = {**self._environment, **_told(order, directory), **_own(command.env)}
        if len(msgspec.json.encode((command.argv, env, command.cwd))) > MAX_MESSAGE - _ROOM:
            raise Invalid("argv", f"and env must have less than {MAX_MESSAGE - _ROOM} bytes together, as JSON")
        run = Command(command, order, sink, directory=directory, places=self._places, watch=self._watch)
        data = None if order.memory is None else order.memory + _SLACK
        confinement = Confinement(isolation=order.isolation, scratch=directory, limits=Limits(data=data))
        run.begin(launcher, confinement, env)
        ending = asyncio.get_running_loop().create_task(run.end())
        self._runs.add(ending)
        ending.add_done_callback(self._runs.discard)
        return run

    async def _with_artifact(self, command: CommandArgs, digest: str, directory: str) -> CommandArgs:
        """Put a copy of the artifact into the scratch directory: a link would let the task change the original."""
        if self._artifacts is None:
            raise Invalid("artifact", "this worker has nowhere to fetch artifacts from")
        target = f"{directory}/artifact"
        async with self._artifacts(digest) as source:
            await asyncio.get_running_loop().run_in_executor(None, scratch.copy_executable, source, target)
        argv = [target if word == ARTIFACT else word for word in command.argv or [ARTIFACT]]
        return msgspec.structs.replace(command, argv=argv)

    async def _living_launcher(self) -> Launcher:
        async with self._launching:
            if self._launcher is None or not self._launcher.lives:
                self._launcher = await Launcher.open(self._options)
            return self._launcher


class Command(Underway):
    """One command under way."""

    def __init__(
        self, command: CommandArgs, order: Order, sink: Sink, *, directory: str, places: scratch.Places, watch: Watch
    ) -> None:
        super().__init__(order, directory, places.give_back)
        self._command = command
        self._watch = watch
        self._stdout, self._stderr = self._outputs = (Output("stdout", tail=TAIL), Output("stderr"))
        for output in self._outputs:
            output.sink = sink

    def begin(self, launcher: Launcher, confinement: Confinement, env: dict[str, str]) -> None:
        """Start it."""
        fds = [_readable(self._command.stdin), self._stdout.write_end, self._stderr.write_end]
        request = Program(argv=self._command.argv, env=env, cwd=self._command.cwd or self.directory)
        self.tree = launcher.run(confinement, request, fds)
        self._watch.add(self)

    async def end(self) -> None:
        """When nothing of it is left, say how it ended."""
        await self.tree.gone
        for output in self._outputs:
            output.drain()
            output.close()
        self._watch.remove(self)
        self.finish(self._judge())

    def _judge(self) -> Ended:
        body = self.tree.body
        usage = Usage(
            cpu_seconds=self.tree.cpu_seconds,
            peak_rss_bytes=body.peak_rss if body else 0,
            isolation=(*body.layers, "scratch", "environment") if body else (),
        )
        ended = abnormal_end(body, usage, oom_kills=self._watch.recent_oom_kills)
        if ended is not None or body is None or body.status is None:
            return ended or Ended(end=End.ERROR, message="it ended, and nobody knows how", usage=usage)
        try:
            files = scratch.output_files(self.directory)
        except Invalid as error:
            return Ended(end=End.FATAL, message=str(error), exit_code=body.status, usage=usage)
        ended = self._judge_code(body.status)
        return msgspec.structs.replace(ended, exit_code=body.status, usage=usage, files=files)

    def _judge_code(self, code: int) -> Ended:
        if code in self._command.ok_exit_codes:
            output = clean_text(self._stdout.tail.decode(errors="replace"), TAIL)
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
        job_id=str(order.job_id), attempt=order.attempt, epoch=order.epoch, token=order.token, scratch=directory
    )

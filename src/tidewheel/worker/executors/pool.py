"""A runner of plain functions as the host sees it: a tree, a channel, two streams, and the run that it has now."""

import asyncio
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.outcome import Usage
from tidewheel.tasks.ending import End, Ended
from tidewheel.worker.execution import Order, Sink
from tidewheel.worker.executors import scratch
from tidewheel.worker.executors.launching import Launcher
from tidewheel.worker.executors.output import Output
from tidewheel.worker.executors.underway import Underway, abnormal_end
from tidewheel.worker.executors.watch import Watch
from tidewheel.worker.launcher.frames import Frames, TooLong, frame
from tidewheel.worker.launcher.messages import Done, Job, Logged, Progressed, Ready, Saved, Words
from tidewheel.worker.sandbox.layers import Confinement

_LAST_WORDS_SECONDS: Final = 5.0
_PAUSE_WHEN_FULL: Final = 0.05
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Words).decode


class Child(asyncio.Protocol):
    """One runner, from the fork to its end. What it says is checked: the task lives in the same process."""

    def __init__(self, launcher: Launcher, confinement: Confinement, watch: Watch) -> None:
        self.isolation = confinement.isolation
        self.launcher = launcher
        self._watch = watch
        self._directory = confinement.scratch
        self._loop = asyncio.get_running_loop()
        self._outputs = (Output("stdout"), Output("stderr"))
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)  # noqa: FBT003 - it has no name
        fds = [theirs.detach(), *(output.write_end for output in self._outputs)]
        self.tree = launcher.fork(confinement, fds)
        self._transport: asyncio.Transport
        self._frames = Frames()
        self._silent: asyncio.Future[None] = self._loop.create_future()
        self._layers: tuple[str, ...] = ()
        self._place = 1
        self._over = False
        self._run: Underway | None = None
        self._sink: Sink | None = None
        self._done: Done | None = None
        self.free: asyncio.Future[bool] = self._loop.create_future()
        """Done when the present run has ended: whether this runner may have another one."""

    async def open(self, at_end: Callable[["Child"], None]) -> None:
        """Begin to listen, and say when nothing of it is left."""
        self._transport, _ = await self._loop.create_unix_connection(lambda: self, sock=self._ours)
        self._ending = self._loop.create_task(self._end())
        self._ending.add_done_callback(lambda _: at_end(self))

    def begin(self, order: Order, sink: Sink) -> Underway:
        """Give it a run."""
        directory = self._here()
        self._run, self._sink, self._done = Underway(order, directory, self._clear), sink, None
        self._run.tree = self.tree
        self.free = self._loop.create_future()
        for output in self._outputs:
            output.sink = sink
        job = Job(
            job_id=str(order.job_id),
            token=order.token,
            epoch=order.epoch,
            attempt=order.attempt,
            kind=order.kind,
            args=order.args,
            saved=order.saved,
            memory=order.memory,
            scratch=directory,
        )
        self._transport.write(frame(_encode(job)))
        self._watch.add(self._run)
        return self._run

    async def ended(self) -> None:
        """Return once nothing of it is left."""
        await self._ending

    def retire(self) -> None:
        """End it."""
        self.tree.tell("kill")

    # What is heard

    def data_received(self, data: bytes) -> None:
        """Take what the runner says."""
        try:
            for words in self._frames.feed(data):
                self._note(_decode(words))
        except (TooLong, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._distrust(f"the process of the task said what no runner says: {error}")
        if getattr(self._sink, "full", False):
            self._transport.pause_reading()
            self._loop.call_later(_PAUSE_WHEN_FULL, self._listen)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - it ends, however that came
        """Note that it will say no more."""
        if not self._silent.done():
            self._silent.set_result(None)

    def _listen(self) -> None:
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _note(self, words: Words) -> None:
        if isinstance(words, Ready):
            self._layers = words.layers
        elif self._sink is None or self._done is not None:
            self._distrust("the process of the task spoke out of turn")
        else:
            self._pass_on(words, self._sink)

    def _pass_on(self, words: Logged | Progressed | Saved | Done, sink: Sink) -> None:
        match words:
            case Logged():
                sink.log(words.level, words.text)
            case Progressed():
                sink.progress(words.fraction, words.message)
            case Saved():
                sink.checkpoint(words.data)
            case Done():
                self._done = words
                self._wind_up(words)

    def _wind_up(self, done: Done) -> None:
        """End the run, now if the runner goes on, else once all of its tree is gone."""
        assert self._run is not None
        self._place += done.untidy
        for output in self._outputs:
            output.drain()
        if done.last or self._run.was_disturbed:
            self.retire()
        else:
            self._finish(_ended(done, self._usage(done), self._run.directory), reusable=True)

    def _distrust(self, why: str) -> None:
        if self._run is not None:
            self._run.kill(End.ERROR, why)
        self.retire()

    # The end

    async def _end(self) -> None:
        """When the tree is gone, hear the last words out and end the run that it may have had."""
        await self.tree.gone
        self._listen()
        late = self._loop.call_later(_LAST_WORDS_SECONDS, self._transport.abort)
        await self._silent
        late.cancel()
        self._transport.close()
        for output in self._outputs:
            output.drain()
            output.close()
        if self._run is not None and self._done is None:
            self._place += 1
        self._over = True
        scratch.remove(self._here(), self._clear_all)
        if self._run is not None:
            self._finish(self._last_words(self._run), reusable=False)

    def _here(self) -> str:
        """Return where the next run is; the same place as before if that was left as it was given."""
        return f"{self._directory}/{self._place}"

    def _clear(self, directory: str) -> None:
        """Remove what a run left behind."""
        if directory != self._here():
            scratch.remove(directory, self._clear_all)

    def _clear_all(self) -> None:
        """Remove what all runs were in, after the last of them was removed."""
        if self._over:
            scratch.remove_empty(self._directory)

    def _last_words(self, run: Underway) -> Ended:
        if self._done is not None:
            return _ended(self._done, self._usage(self._done), run.directory)
        body = self.tree.body
        usage = Usage(
            cpu_seconds=self.tree.cpu_seconds, peak_rss_bytes=body.peak_rss if body else 0, isolation=self._layers
        )
        ended = abnormal_end(body, usage, oom_kills=self._watch.recent_oom_kills)
        if ended is not None:
            return ended
        code = body.status if body else None
        return Ended(end=End.ERROR, message=f"its process ended with exit code {code}", exit_code=code, usage=usage)

    def _finish(self, ended: Ended, *, reusable: bool) -> None:
        run = self._run
        assert run is not None
        self._run = self._sink = None
        for output in self._outputs:
            output.sink = None
        self._watch.remove(run)
        run.finish(ended)
        if not self.free.done():
            self.free.set_result(reusable)

    def _usage(self, done: Done) -> Usage:
        return Usage(cpu_seconds=done.cpu_seconds, peak_rss_bytes=done.peak_rss, isolation=self._layers)


def _ended(done: Done, usage: Usage, directory: str) -> Ended:
    """Translate what a runner said of a run."""
    try:
        files = scratch.output_files(directory) if done.untidy else {}
    except Invalid as error:
        return Ended(end=End.FATAL, message=str(error), usage=usage)
    return Ended(
        end=End(done.end),
        result=bytes(done.result).decode() if done.end == "returned" else None,
        message=done.message,
        detail=done.detail,
        after=None if done.after is None else timedelta(seconds=done.after),
        usage=usage,
        files=files,
    )

"""A runner of plain functions as the host sees it: a tree, a channel, two streams, and the run that it has now."""

import asyncio
import select
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from tidewheel.model.outcome import Usage
from tidewheel.tasks.definition import Isolation
from tidewheel.worker.execution import End, Ended, Order, Sink
from tidewheel.worker.executors.launching import Launcher
from tidewheel.worker.executors.output import Output
from tidewheel.worker.executors.scratch import Place
from tidewheel.worker.executors.underway import Kills, Underway, end_of_tree, with_files
from tidewheel.worker.executors.watch import Watch
from tidewheel.worker.launcher.frames import Frames, TooLong, frame
from tidewheel.worker.launcher.messages import Done, Job, Logged, Progressed, Ready, Saved, Words
from tidewheel.worker.sandbox import tree
from tidewheel.worker.sandbox.layers import Confinement

_LAST_WORDS_SECONDS: Final = 5.0
_PAUSE_WHEN_FULL: Final = 0.05
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Words).decode


class Child(asyncio.Protocol):
    """One runner, from the fork to its end. What it says is checked: the task lives in the same process."""

    def __init__(self, launcher: Launcher, isolation: Isolation, place: Place, watch: Watch) -> None:
        self.isolation = isolation
        self._launcher = launcher
        self._watch = watch
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._outputs = (Output("stdout"), Output("stderr"))
        self._unread = select.poll()
        for output in self._outputs:
            output.register(self._unread)
        self._ours, theirs = socket.socketpair()
        self._ours.setblocking(False)  # noqa: FBT003 - it has no name
        fds = [theirs.detach(), *(output.write_end for output in self._outputs)]
        self.tree = launcher.fork("runner", Confinement(isolation=isolation, scratch=place.directory), fds)
        self._transport: asyncio.Transport
        self._frames = Frames()
        self._silent: asyncio.Future[None] = self._loop.create_future()
        self._layers: tuple[str, ...] = ()
        self._run: Underway | None = None
        self._sink: Sink | None = None
        self._done: Done | None = None
        self._born = 0
        self._at_free: Callable[[Child], None]

    async def open(self, at_end: Callable[["Child"], None]) -> None:
        """Begin to listen, and say when nothing of it is left."""
        self._transport, _ = await self._loop.create_unix_connection(lambda: self, sock=self._ours)
        self._ending = self._loop.create_task(self._end())
        self._ending.add_done_callback(lambda _: at_end(self))

    @property
    def is_usable(self) -> bool:
        """Whether it can have a run."""
        return not self.tree.gone.done() and self._launcher.lives

    @property
    def growth(self) -> int:
        """How many bytes more it has in memory than when it was ready for its first run."""
        return max(0, self._size() - self._born)

    def _size(self) -> int:
        return 0 if self.tree.pid is None else sum(map(tree.resident, tree.descendants(self.tree.pid)))

    def begin(
        self, order: Order, sink: Sink, at_free: Callable[["Child"], None], kills: Kills | None = None
    ) -> Underway:
        """Give it a run, and say when it can have another one."""
        self._run, self._sink, self._done = Underway(order, self.tree, kills), sink, None
        self._at_free = at_free
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
            scratch=self._place.prepare(),
            trace=order.trace,
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
            self._layers, self._born = words.layers, self._size()
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
        if self._unread.poll(0):
            for output in self._outputs:
                output.drain()
        if done.last or self._run.was_disturbed or (done.untidy and not self._place.is_clean):
            self.retire()
        else:
            with self._run.sure_to_end():
                self._finish(done)
                self._at_free(self)

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
        if self._run is not None:
            with self._run.sure_to_end():
                self._finish(self._done)
        self._place.close()

    def _finish(self, done: Done | None) -> None:
        """End the present run by what the runner said of it, or by what became of the tree if it said nothing."""
        run = self._run
        assert run is not None
        self._run = self._sink = None
        for output in self._outputs:
            output.sink = None
        self._watch.remove(run)
        left = self._place.set_aside() if done is None or done.untidy else None
        run.finish(
            self._end_of_tree(run) if done is None else with_files(_ended(done, self._usage(done)), left),
            left,
        )

    def _end_of_tree(self, run: Underway) -> Ended:
        body = self.tree.body
        peak = 0 if body is None else body.peak_rss
        usage = Usage(cpu_seconds=self.tree.cpu_seconds, peak_rss_bytes=peak, isolation=self._layers + self.tree.layers)
        return end_of_tree(body, usage, oom_kills=run.kills or self._watch.recent_oom_kills)

    def _usage(self, done: Done) -> Usage:
        return Usage(
            cpu_seconds=done.cpu_seconds, peak_rss_bytes=done.peak_rss, isolation=self._layers + self.tree.layers
        )


def _ended(done: Done, usage: Usage) -> Ended:
    """Translate what a runner said of a run."""
    return Ended(
        end=End(done.end),
        result=bytes(done.result).decode() if done.end == "returned" else None,
        message=done.message,
        detail=done.detail,
        after=None if done.after is None else timedelta(seconds=done.after),
        usage=usage,
    )

"""RQ on Redis without a fork for each job: `SimpleWorker`, which is its fastest."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from redis import Redis
from rq import Queue, SimpleWorker

from bench.rivals.programs.marks import began
from bench.rivals.programs.program import NAME, PAD, Send, url

connection = Redis.from_url(url())
queue = Queue(NAME, connection=connection)


def noop(number: int, pad: str) -> None:  # noqa: ARG001 - a row like real ones
    began(number)


class Program:
    async def prepare(self) -> None:
        """Do nothing: Redis makes lists when they are pushed to."""

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Send]:
        async def send(numbers: Sequence[int]) -> None:
            queue.enqueue_many([Queue.prepare_data(noop, (number, PAD)) for number in numbers])

        yield send

    def work(self) -> None:
        SimpleWorker([queue], connection=connection).work(logging_level="ERROR")


program = Program()

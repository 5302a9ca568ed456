"""RQ on Redis without a fork for each job: `SimpleWorker`, which is its fastest."""

from collections.abc import Sequence

from redis import Redis
from rq import Queue, SimpleWorker

from bench.rivals.programs.marks import began
from bench.rivals.programs.program import NAME, PAD, Ready, url

connection = Redis.from_url(url())
queue = Queue(NAME, connection=connection)


def noop(number: int, pad: str) -> None:  # noqa: ARG001 - a row like real ones
    began(number)


def send(numbers: Sequence[int]) -> None:
    queue.enqueue_many([Queue.prepare_data(noop, (number, PAD)) for number in numbers])


def work() -> None:
    SimpleWorker([queue], connection=connection).work(logging_level="ERROR")


program = Ready(send, work)

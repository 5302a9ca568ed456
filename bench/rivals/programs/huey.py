"""Huey on one SQLite file that is synced at every commit, two processes; it looks for jobs as often as by default."""

from collections.abc import Sequence

from huey import SqliteHuey

from bench.rivals.programs.marks import began
from bench.rivals.programs.program import NAME, PAD, Ready, url

queue = SqliteHuey(NAME, filename=url(), fsync=True)


@queue.task(name=NAME)
def noop(number: int, pad: str) -> None:  # noqa: ARG001 - a row like real ones
    began(number)


def send(numbers: Sequence[int]) -> None:
    for number in numbers:
        noop(number, PAD)


def work() -> None:
    queue.create_consumer(workers=2, worker_type="process").run()


program = Ready(send, work)

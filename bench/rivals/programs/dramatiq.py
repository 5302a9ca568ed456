"""Dramatiq on Redis, two processes of eight threads each, which is its default."""

from collections.abc import Sequence

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.cli import main, make_argument_parser

from bench.rivals.programs.marks import began
from bench.rivals.programs.program import NAME, PAD, Ready, url

broker = RedisBroker(url=url())
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name=NAME)
def noop(number: int, pad: str) -> None:  # noqa: ARG001 - a row like real ones
    began(number)


def send(numbers: Sequence[int]) -> None:
    for number in numbers:
        noop.send(number, PAD)


def work() -> None:
    main(make_argument_parser().parse_args(["--processes", "2", "--threads", "8", __name__]))


program = Ready(send, work)

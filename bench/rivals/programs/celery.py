"""Celery on Redis, two forked processes; acknowledged after the run, so that the death of a worker loses nothing."""

from collections.abc import Sequence

from celery import Celery

from bench.rivals.programs.marks import began
from bench.rivals.programs.program import NAME, PAD, Ready, url

PREFETCH = 64
app = Celery(NAME, broker=url())
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=PREFETCH,
    broker_connection_retry_on_startup=True,
)


@app.task(name=NAME)
def noop(number: int, pad: str) -> None:  # noqa: ARG001 - a row like real ones
    began(number)


def send(numbers: Sequence[int]) -> None:
    for number in numbers:
        noop.delay(number, PAD)


def work() -> None:
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    app.worker_main(["worker", "--pool", "prefork", "--concurrency", "2", "--loglevel", "ERROR", *quiet])


program = Ready(send, work)

"""One transaction on SQLite for statements of the caller's own and for jobs."""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from tidewheel.observe.tracing import sending
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.job import Job
from tidewheel.sdk.portal import portal
from tidewheel.sdk.task import Task
from tidewheel.store.base import Store
from tidewheel.store.joining import Inside

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Transaction:
    """What `app.transaction` gives to its callback; of no use afterwards."""

    def __init__(self, desk: Desk, inside: Inside) -> None:
        self._desk = desk
        self._inside = inside

    def execute(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement on tables of your own, with `?` or `:name` for values, and return its rows."""
        return self._inside.execute(sql, values)

    def enqueue(self, task: Task[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Enqueue a job that is there if the transaction commits: `tx.enqueue(send, 1)`, or `send.using(…)`."""
        with sending([task.si(*args, **kwargs).spec()]) as specs:
            [answer] = self._inside.submit(specs)
        return Job(self._desk, answer.job_id, created=answer.created)


async def arun_transaction(desk: Desk, work: Callable[[Transaction], T]) -> T:
    """Run a callback inside a transaction of the store."""
    forbidden = portal().forbidden

    def run(inside: Inside) -> T:
        forbidden.why = "inside app.transaction use tx.enqueue and tx.execute: any other call would wait for its end"
        try:
            return work(Transaction(desk, inside))
        finally:
            forbidden.why = None

    async def transact(store: Store) -> T:
        await desk.declare_limits(store, [task.kind for task in desk.registry])
        return await store.transact(run)

    return await desk.use(transact)

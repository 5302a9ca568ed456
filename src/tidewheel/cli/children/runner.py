"""A runner as a process of its own."""

from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from tidewheel.logs.descriptors import keep_descriptors_apart
from tidewheel.logs.handler import keep_runs_apart
from tidewheel.logs.shortcut import shorten_logging
from tidewheel.logs.streams import route_output, set_up_by_the_app
from tidewheel.logs.threads import carry_runs_into_threads
from tidewheel.model.resources import Resources
from tidewheel.sdk.desk import Desk
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.definition import HTTP
from tidewheel.tasks.loading import load_registry
from tidewheel.wiring import open_all
from tidewheel.worker.child import Workshop, run_child, work
from tidewheel.worker.executors.http import HttpTask
from tidewheel.worker.executors.inline import CallerTask, InlineTask, Tools
from tidewheel.worker.runner import Runner
from tidewheel.worker.slots import before_exit, end_copies

_NOTHING: Final[Resources] = {}
"""Jobs that ask for resources run at the host."""


async def _build(shop: Workshop, _: AsyncExitStack) -> Runner:
    setup = shop.setup
    tasks: dict[str, InlineTask] = {HTTP: HttpTask()}
    route_output()  # before the app is loaded: a handler that it makes keeps the stream that it finds
    if setup.app is not None:
        with set_up_by_the_app():
            app = load_registry(setup.app)
        if isinstance(app, Desk):
            app.work_for(setup.database, setup.blobs)
        tasks |= {task.kind: CallerTask(task) for task in app.registry if task.mode == "inline"}
    request = ClaimRequest(
        worker_id=setup.worker_id,
        limit=1,
        queues=setup.queues,
        kinds=frozenset(tasks),
        free=_NOTHING,
        labels=setup.offer.labels,
    )
    end_copies()
    carry_runs_into_threads()
    shorten_logging(keep_runs_apart())
    tools = Tools(shop.settler, shop.reports, shop.handover, shop.page, shop.clock, shop.store.epoch, shop.numbers)
    runner = Runner(tasks, request, tools, slots=setup.slots, grace=setup.grace.total_seconds())
    before_exit(runner.tell_who_exits)
    return runner


if __name__ == "__main__":
    keep_descriptors_apart()
    run_child(partial(work, open_all=open_all, build=_build))

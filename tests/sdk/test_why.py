"""A job says why it does not run, in both faces of the SDK."""

from uuid import UUID

import pytest

from tidewheel import App
from tidewheel.errors import NotFound
from tidewheel.model.why import BehindGate, Ended, NoWorker
from tidewheel.testing import in_memory

app = App("sqlite:///never-opened.db")


@app.task
async def mail(to: str) -> str:
    return f"sent to {to}"


def test_a_job_tells_all_that_keeps_it() -> None:
    with in_memory(app) as test:
        job = mail.enqueue("ada")
        gate = app.gates.hold(kind=mail.kind, reason="upgrade", author="ann")
        held, nobody = job.why()
        assert isinstance(held, BehindGate)
        assert isinstance(nobody, NoWorker)
        assert (held.gate, nobody.lacks) == (gate, "worker")
        app.gates.open(gate)
        test.run_inline()
        (ended,) = job.why()
        assert isinstance(ended, Ended)


async def test_the_same_in_async_code() -> None:
    async with in_memory(app):
        job = await mail.aenqueue("ada")
        (nobody,) = await job.awhy()
        assert nobody.sentence == "No worker is alive."


def test_an_unknown_job_is_not_found() -> None:
    with in_memory(app), pytest.raises(NotFound):
        app.job(UUID(int=7)).why()

"""The gates of an app: what its operators hold, drop and slow, in both faces of the SDK."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import pytest

from tidewheel import App
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.gate import Gate, GateMode
from tidewheel.model.states import State
from tidewheel.sdk.gates import parse_rate
from tidewheel.testing import in_memory

app = App("sqlite:///never-opened.db")


@app.task
async def mail(to: str) -> str:
    return f"sent to {to}"


def test_a_held_job_shows_its_gate_and_runs_when_it_is_opened() -> None:
    with in_memory(app) as test:
        job = mail.enqueue("ada")
        gate = app.gates.hold(kind=mail.kind, reason="upgrade", author="ann")
        test.run_inline()
        assert (job.state(), job.info().gates) == (State.QUEUED, (gate,))
        assert app.gates.list() == [gate]
        app.gates.open(gate)
        test.run_inline()
        assert job.result() == "sent to ada"
        with pytest.raises(NotFound):
            app.gates.open(gate.id)


async def test_the_same_in_async_code() -> None:
    async with in_memory(app) as test:
        job = await mail.aenqueue("ada")
        gate = await app.gates.ahold(kind=mail.kind, lasts="10m")
        assert gate.expires_at == test.clock.now() + timedelta(minutes=10)
        slow = await app.gates.aslow("30/m", queue="default", tenant="default")
        assert (slow.mode, slow.rate) == (GateMode.SLOW, 0.5)
        drop = await app.gates.adrop(kind="other", stop_running=True)
        assert (drop.mode, drop.stop_running) == (GateMode.DROP, True)
        assert await app.gates.alist() == [gate, slow, drop]
        await app.gates.aopen(gate)
        await test.arun_inline()
        assert await job.aresult() == "sent to ada"


def test_what_cannot_be_is_refused_and_closes_nothing() -> None:
    with in_memory(app) as test:
        past = test.clock.now() - timedelta(seconds=1)
        refused: list[tuple[str, Callable[[], Gate]]] = [
            ("gate", app.gates.hold),
            ("rate", lambda: app.gates.slow(0, kind="mail")),
            ("rate", lambda: app.gates.slow("often", kind="mail")),
            ("rate", lambda: app.gates.slow("0/s", kind="mail")),
            ("expires_at", lambda: app.gates.drop(kind="mail", expires_at=past)),
            ("expires_at", lambda: app.gates.drop(kind="mail", expires_at=datetime(2040, 1, 1))),  # noqa: DTZ001
            ("lasts", lambda: app.gates.hold(kind="mail", lasts=0)),
            ("stop_running", lambda: app.gates.drop(kind="mail", stop_running="yes")),  # type: ignore[arg-type]
            ("lasts", lambda: app.gates.hold(kind="mail", lasts="1h", expires_at=datetime(2040, 1, 1, tzinfo=UTC))),
        ]
        for field, close in refused:
            with pytest.raises(Invalid) as refusal:
                close()
            assert refusal.value.field == field
        assert app.gates.list() == []
        with pytest.raises(NotFound):
            app.gates.open(uuid4())


@pytest.mark.parametrize("how", ["hold", "drop", "slow"])
def test_an_option_that_was_mistyped_closes_no_gate_on_more_than_was_meant(how: str) -> None:
    with in_memory(app):
        close: Callable[..., Gate] = partial(app.gates.slow, 5) if how == "slow" else getattr(app.gates, how)
        with pytest.raises(Invalid, match="did you mean tenant") as refusal:
            close(kind="mail", tennant="trial")
        assert refusal.value.field == "tennant"
        assert app.gates.list() == []


def test_what_is_no_gate_cannot_be_opened() -> None:
    with in_memory(app), pytest.raises(Invalid) as refusal:
        app.gates.open("mail")  # type: ignore[arg-type]
    assert refusal.value.field == "gate"


@pytest.mark.parametrize(
    ("text", "rate"), [("10/s", 10), ("90/m", 1.5), (" 36 / h ", 0.01), ("1/d", 1 / 86_400), (7, 7)]
)
def test_rates_are_numbers_or_texts(text: str | float, rate: float) -> None:
    assert parse_rate(text) == pytest.approx(rate)

"""Chains and groups."""

from typing import Any

import pytest

from tidewheel import App, Invalid, State, chain, group
from tidewheel.model.job import JobSpec
from tidewheel.sdk.flow import Part
from tidewheel.sdk.task import NOTHING, Task
from tidewheel.testing import in_memory


@pytest.fixture
def app() -> App:
    app = App()

    @app.task(name="add")
    def add(a: int, b: int = 1) -> int:
        return a + b

    @app.task(name="total")
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.task(name="note")
    def note(text: str) -> str:
        return text

    @app.task(name="broken", retry=False)
    def broken(a: int) -> int:
        raise ValueError(a)

    return app


def task(app: App, kind: str) -> Any:
    found = app.registry.get(kind)
    assert found is not None
    return Task(app, found)


def laid(flow: Part) -> list[Any]:
    """Return what would be handed in, with the places of jobs in the batch in the stead of their ids."""
    specs: list[JobSpec] = []
    flow.lay(NOTHING, specs)
    places: dict[Any, int] = {spec.id: place for place, spec in enumerate(specs)}
    return [(spec.kind, _placed(spec.args, places), [places[i] for i in spec.after]) for spec in specs]


def _placed(value: Any, places: dict[Any, int]) -> Any:
    names = {str(job_id): f"#{place}" for job_id, place in places.items()}
    if isinstance(value, dict):
        return (
            names[value["$result_of"]] if "$result_of" in value else {k: _placed(v, places) for k, v in value.items()}
        )
    return [_placed(inner, places) for inner in value] if isinstance(value, list) else value


def test_each_of_a_chain_gets_the_result_of_the_one_before(app: App) -> None:
    add, note = task(app, "add"), task(app, "note")

    assert laid(chain(add.s(1, 2), add.s(), add.s(10), add.s(a=5), note.si("done"))) == [
        ("add", {"a": 1, "b": 2}, []),
        ("add", {"a": "#0"}, [0]),
        ("add", {"a": "#1", "b": 10}, [1]),
        ("add", {"a": 5, "b": "#2"}, [2]),
        ("note", {"text": "done"}, [3]),
    ]


def test_what_follows_a_group_gets_the_list_of_results(app: App) -> None:
    add, total = task(app, "add"), task(app, "total")

    assert laid(chain(add.s(0), group(add.s(), chain(add.s(), add.s())), total.s())) == [
        ("add", {"a": 0}, []),
        ("add", {"a": "#0"}, [0]),
        ("add", {"a": "#0"}, [0]),
        ("add", {"a": "#2"}, [2]),
        ("total", {"numbers": ["#1", "#3"]}, [1, 3]),
    ]


def test_a_chain_runs_to_its_end(app: App) -> None:
    add, total = task(app, "add"), task(app, "total")
    with in_memory(app) as test:
        job = chain(add.s(1), group(add.s(10), add.s(20)), total.s()).enqueue()
        assert len(test.enqueued()) == 4
        assert job.state() is State.BLOCKED
        test.run_inline()
        assert job.result() == 12 + 22

        both = group(add.s(1), add.s(2)).enqueue()
        test.run_inline()
        assert both.result() == [2, 3]


def test_a_chain_stops_where_it_breaks(app: App) -> None:
    add, broken = task(app, "add"), task(app, "broken")
    with in_memory(app) as test:
        job = chain(add.s(1), broken.s(), add.s()).enqueue()
        test.run_inline()
        assert job.state() is State.SKIPPED


def test_a_job_may_wait_for_others(app: App) -> None:
    add, note = task(app, "add"), task(app, "note")
    with in_memory(app) as test:
        first, second = add.enqueue(1), add.enqueue(2)
        last = note.using(after=[first, second.id], on_parent_failure="run").enqueue("done")
        assert last.info().after == (first.id, second.id)
        test.run_inline()
        assert last.result() == "done"


def test_flows_that_make_no_sense_are_refused(app: App) -> None:
    add = task(app, "add")
    bad: Any = add

    for make, why in (
        (lambda: chain(*[]), "needs at least one task"),
        (lambda: group(*[]), "needs at least one task"),
        (lambda: chain(bad), "must be calls such as"),
        (lambda: chain(add.using(idempotency_key="k").s(1)).enqueue(), "cannot have idempotency_key"),
        (lambda: group(add.using(unique="keep").s(1)).enqueue(), "unique='keep'"),
        (lambda: chain(add.using(connection=object()).s(1)).enqueue(), "connection"),
        (lambda: chain(add.s()).enqueue(), "missing a required argument"),
    ):
        with pytest.raises(Invalid) as caught:
            make()
        assert why in str(caught.value)


def test_a_result_that_nobody_takes_is_refused(app: App) -> None:
    add, total = task(app, "add"), task(app, "total")

    with pytest.raises(Invalid, match=r"use \.si\(\)"):
        laid(chain(add.s(1), total.s(numbers=[1])))

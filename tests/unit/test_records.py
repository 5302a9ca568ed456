"""One row that cannot be read does not hide the others."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tidewheel.model.outcome import Failure
from tidewheel.store.records import Dialect, JobRow, attempt_of, failure_text, job_of

DIALECT = Dialect(uuid=lambda value: value, instant=lambda value: value, keys=tuple, ids=tuple)
UNREADABLE = ["1e999", '"\\ud800"', "[" * 3000 + "]" * 3000, "no json", ""]
AT = datetime(2030, 1, 1, tzinfo=UTC)


def _row(**fields: Any) -> JobRow:
    plain: dict[str, Any] = dict.fromkeys(JobRow._fields)
    plain |= {"id": UUID(int=1), "tenant": "t", "queue": "q", "kind": "k", "needs": "", "state": "dead", "priority": 1}
    plain |= {"gate": "", "token": 1, "failures": 0, "losses": 0, "created_at": AT, "updated_at": AT, "due_at": AT}
    return JobRow(**plain | {"run_at": AT} | fields)


@pytest.mark.parametrize("text", UNREADABLE)
@pytest.mark.parametrize("field", ["args", "result"])
def test_json_that_cannot_be_read_is_shown_as_text(field: str, text: str) -> None:
    assert getattr(job_of(_row(**{field: text}), DIALECT), field) == text


@pytest.mark.parametrize("text", [*UNREADABLE, "{}"])
def test_an_error_that_cannot_be_read_is_shown_as_text(text: str) -> None:
    shown = Failure(reason="unreadable", message=text)
    assert job_of(_row(error=text), DIALECT).error == shown
    assert attempt_of((UUID(int=1), 1, None, None, AT, "failed", text, None), DIALECT).error == shown


@pytest.mark.parametrize("text", [*UNREADABLE, '{"cpu_seconds":"x"}'])
def test_figures_that_cannot_be_read_are_left_out(text: str) -> None:
    assert job_of(_row(usage=text), DIALECT).usage is None
    assert attempt_of((UUID(int=1), 1, None, None, AT, "failed", None, text), DIALECT).usage is None


def test_what_can_be_read_is_read() -> None:
    failure = Failure(reason="error", message="m")
    job = job_of(_row(args='{"a":1}', result="[null]", error=failure_text(failure)), DIALECT)
    assert (job.args, job.result, job.error) == ({"a": 1}, [None], failure)

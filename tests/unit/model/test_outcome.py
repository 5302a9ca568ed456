"""An outcome with a flaw is known before it is stored."""

from typing import Any
from uuid import UUID

import pytest

from tidewheel.model.outcome import (
    MAX_RESULT_BYTES,
    Failure,
    Outcome,
    Verdict,
    flaw_of,
    flaws_of,
    own_location,
    recognise,
)
from tidewheel.model.states import Cause


def _outcome(**fields: Any) -> Outcome:
    return Outcome(UUID(int=1), 1, Cause.RETURNED, **fields)


@pytest.mark.parametrize(
    "result", [None, "null", '{"a": [1, "ü"]}', "[" * 64 + "]" * 64, '"' + "x" * (MAX_RESULT_BYTES - 2) + '"']
)
def test_sound_results_have_no_flaw(result: str | None) -> None:
    assert flaw_of(_outcome(result=result)) is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"result": "1e999"}, "result: is not JSON"),
        ({"result": '"\\ud800"'}, "result: is not JSON"),
        ({"result": '"\ud800"'}, "result: is not JSON"),
        ({"result": '"\\u0000"'}, "result: must not contain"),
        ({"result": ""}, "result: is not JSON"),
        ({"result": "[" * 65 + "]" * 65}, "more than 64 levels"),
        ({"result": "[" * 3000 + "]" * 3000}, "more than 64 levels"),
        ({"result": '"' + "x" * MAX_RESULT_BYTES + '"'}, "at most 65536 bytes"),
        ({"result": '"' + "ü" * (MAX_RESULT_BYTES // 2) + '"'}, "at most 65536 bytes"),
        ({"result_location": "s3://nul\0"}, "result_location: is not where"),
        ({"result_location": own_location(UUID(int=2), 1)}, "result_location: is not where"),
        ({"result_location": own_location(UUID(int=1), 2)}, "result_location: is not where"),
        ({"error": Failure(reason="\ud800")}, "error.reason: must not contain"),
        ({"error": Failure(reason="error", message="\0")}, "error.message: must not contain"),
        ({"error": Failure(reason="error", detail="\udfff")}, "error.detail: must not contain"),
    ],
)
def test_a_flaw_is_said_in_words(fields: dict[str, Any], said: str) -> None:
    why = flaw_of(_outcome(**fields))
    assert why is not None
    assert said in why
    assert why.encode(), "the words can be stored"


def test_flaws_are_told_by_position() -> None:
    assert list(flaws_of([_outcome(result="1"), _outcome(result="1e999"), _outcome()])) == [1]


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.FAILED, Cause.GAVE_UP])
def test_an_unstorable_outcome_stays_so_when_it_is_said_again(cause: Cause) -> None:
    assert recognise(cause, "unstorable") is Verdict.UNSTORABLE

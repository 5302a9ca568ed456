"""The environment of a runner: made anew for each function, whatever the one before did to it."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from tidewheel.worker.launcher.variables import Variables


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KEPT", "as it was")
    before = Variables()
    yield
    before.make({})


def test_what_a_function_is_told_is_there_beside_what_was_at_first() -> None:
    variables = Variables()
    before = dict(os.environ)

    variables.make({"TIDE_TOLD": "søme\udcff"})

    assert dict(os.environ) == {**before, "TIDE_TOLD": "søme\udcff"}


def test_the_next_function_finds_nothing_of_the_one_before() -> None:
    variables = Variables()
    before = dict(os.environ)
    variables.make({"TIDE_TOLD": "first", "TIDE_ALSO": "this"})
    os.environ["KEPT"] = "changed"
    os.environb[b"ADDED"] = b"\xff"
    del os.environ["PATH"]

    variables.make({"TIDE_TOLD": "second"})

    assert dict(os.environ) == {**before, "TIDE_TOLD": "second"}
    assert (
        subprocess.check_output(["/bin/sh", "-c", 'echo "$KEPT/$ADDED/$TIDE_TOLD/$TIDE_ALSO"'])
        == b"as it was//second/\n"
    )


def test_not_even_if_that_put_another_environment_in_its_place() -> None:
    variables = Variables()
    before = os.environ
    os.environ = {"ONLY": "this"}  # type: ignore[assignment]  # noqa: B003 - as a careless function does

    variables.make({})

    assert os.environ is before

"""Failures of one cause have one fingerprint, and others another."""

import pytest

from tidewheel.errors import Invalid
from tidewheel.model.fingerprint import check_fingerprint, fingerprint_of, normal_form
from tidewheel.model.outcome import Failure

STORY = """Traceback (most recent call last):
  File "/srv/releases/41/shop/orders.py", line {line}, in charge
    return client.post(order)
  File "/srv/venv/lib/python3.11/site-packages/httpx/_client.py", line 914, in post
    raise ConnectError(message)
httpx.ConnectError: {message}
"""


def error(message: str, *, reason: str = "error", line: int = 12, **fields: object) -> Failure:
    story = STORY.format(line=line, message=message)
    return Failure(**{"reason": reason, "message": message, "detail": story, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 17 is gone", "order 4711 is gone"),
        ("after 1.5 s: no answer", "after 30.25 s: no answer"),
        ("no user 'ada'", "no user 'bob o neill'"),
        ('no user "ada"', 'no user ""'),
        ("job 0190a5c2-1111-7abc-8def-000000000001 broke", "job 0190a5c2-2222-7abc-8def-00000000ffff broke"),
        ("commit deadbeef42 is missing", "commit 0a1b2c3d4e is missing"),
        ("at 0x7f3a_ish <object at 0x7f3a99>", "at 0x7f3a_ish <object at 0x1>"),
        ("on 2026-11-16T07:00:00", "on 2027-01-02T23:59:01"),
        ("first line\nand 17 more", "first line\nand nothing else"),
    ],
)
def test_ids_numbers_and_quoted_texts_make_no_difference(one: str, other: str) -> None:
    assert fingerprint_of(error(one)) == fingerprint_of(error(other))


@pytest.mark.parametrize(
    "other",
    [
        error("no answer", reason="timeout"),
        error("no such host"),
        error("no answer", exit_code=3),
        error("no answer", detail=STORY.format(line=12, message="no answer").replace("in charge", "in refund")),
        error("no answer", detail=STORY.format(line=12, message="no answer").replace("orders.py", "bills.py")),
        error("no answer", detail=STORY.format(line=12, message="no answer").replace("ConnectError:", "ReadError:")),
        error("no answer", detail=None),
    ],
)
def test_another_reason_text_type_or_place_is_another_failure(other: Failure) -> None:
    assert fingerprint_of(other) != fingerprint_of(error("no answer"))


def test_line_numbers_folders_and_the_depth_of_libraries_make_no_difference() -> None:
    moved = STORY.format(line=99, message="no answer").replace("/srv/releases/41", "/srv/releases/42")
    deeper = moved.replace("line 914, in post", "line 1, in deeper")
    assert fingerprint_of(error("no answer", detail=deeper)) == fingerprint_of(error("no answer"))


def test_a_failure_without_words_has_a_fingerprint_too() -> None:
    assert fingerprint_of(None) == fingerprint_of(None) != fingerprint_of(Failure(reason="error"))
    assert len(fingerprint_of(Failure(reason="x", message="\ud800" * 3, detail="\ud800"))) == 16


def test_words_with_apostrophes_are_not_quotes() -> None:
    assert normal_form("it can't be done, it won't") == "it can't be done, it won't"
    assert normal_form("it can't find 'x' in y") == "it can't find '…' in y"
    assert normal_form("x" * 10_000) == "x" * 500


@pytest.mark.parametrize("bad", ["", "xyz", "0" * 15, "0" * 17, "0" * 15 + "G", None, 7])
def test_what_cannot_be_a_fingerprint_is_refused(bad: object) -> None:
    with pytest.raises(Invalid) as caught:
        check_fingerprint("fingerprint", bad)
    assert caught.value.field == "fingerprint"

"""Headers of HTTP jobs: what cannot be sent is refused with the job, and ends it for good if it exists."""

from uuid import UUID

import pytest

from tidewheel.errors import Invalid
from tidewheel.tasks.builtin import HttpCall, check_http
from tidewheel.tasks.context import Context
from tidewheel.tasks.signals import Fatal
from tidewheel.worker.executors.http import call

JOB = UUID("01a1e11e-1dcf-707c-9333-56e6668dd66c")
NOWHERE = "http://127.0.0.1:9/"

UNSENDABLE = pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Name", "é"),
        ("X-Name", "一"),
        ("X-Name", "\ud800"),
        ("X-Name", "a\r\nX-Other: b"),
        ("X-Name", "a\nb"),
        ("X-Name", "a\0b"),
        ("X-Name", "a\x0bb"),
        ("X-Name", " a"),
        ("X-Name", "a "),
        ("X-Näme", "a"),
        ("X-Name\n", "a"),
        ("X\0", "a"),
        ("", "a"),
    ],
)


class Silent:
    def log(self, level: str, text: str) -> None: ...

    def progress(self, fraction: float, message: str) -> None: ...

    def checkpoint(self, data: str) -> None: ...


@UNSENDABLE
def test_a_header_that_cannot_be_sent_is_refused(name: str, value: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_http(HttpCall(url=NOWHERE, headers={name: value}))

    assert caught.value.field == "headers"


@UNSENDABLE
async def test_a_job_with_such_a_header_is_not_tried_again_and_its_value_is_not_told(name: str, value: str) -> None:
    context = Context(job_id=JOB, token=1, epoch=1, attempt=1, saved=None, reporter=Silent())

    with pytest.raises(Fatal, match="headers: ") as caught:
        await call(context, {"url": NOWHERE, "headers": {name: value, "X-Secret": "hidden"}})

    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("value", ["", "a", "a b", "a\tb", 'W/"1"', "!#$%&'*+~{}", "caf%C3%A9"])
def test_other_headers_are_welcome(value: str) -> None:
    assert check_http(HttpCall(url=NOWHERE, headers={"X-Name": value})).headers == {"X-Name": value}


@pytest.mark.parametrize("url", ["http://a/\r\nX", "http://a/\0", "http://a\x01/", "http://a/\x7f"])
def test_an_address_with_control_characters_is_refused(url: str) -> None:
    with pytest.raises(Invalid, match="url: "):
        check_http(HttpCall(url=url))

"""Arguments of the built-in kinds are checked where they come in; what only a run will know is left to the run."""

from typing import Any

import pytest

from tidewheel.errors import Invalid
from tidewheel.tasks.builtin import check_call, preempt_in

RESULT = {"$result_of": "01900000-0000-7000-8000-000000000000"}
SECRET = {"$secret": "hook"}
URL = "https://example.com"


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("command", {"argv": ["true"]}),
        ("command", {"argv": RESULT}),
        ("command", {"argv": ["cat"], "stdin": RESULT, "env": {"A": SECRET}, "ok_exit_codes": RESULT}),
        ("command", {"argv": ["a"], "isolation": "none", "preempt": "requeue"}),
        ("http", {"url": URL}),
        ("http", {"url": SECRET}),
        ("http", {"url": RESULT, "headers": {"Authorization": SECRET}, "body": RESULT}),
        ("http", {"url": URL, "headers": SECRET}),
        ("shop.http", {"url": 7}),
    ],
)
def test_what_a_run_can_begin_with_is_let_in(kind: str, args: dict[str, Any]) -> None:
    check_call(kind, args)


@pytest.mark.parametrize(
    ("kind", "args", "field"),
    [
        ("command", {}, "args.argv"),
        ("command", {"argv": "true"}, "args.argv"),
        ("command", {"argv": ["true", 1]}, "args.argv[1]"),
        ("command", {"argv": ["true"], "env": {"A=": SECRET}}, "args.env"),
        ("command", {"argv": ["true"], "isolation": "weak"}, "args.isolation"),
        ("command", {"argv": ["true"], "preempt": 1}, "args.preempt"),
        ("command", {"argv": ["true"], "shell": True}, "args.shell"),
        ("http", {}, "args.url"),
        ("http", {"url": "no url"}, "args.url"),
        ("http", {"url": "http://[::1"}, "args.url"),
        ("http", {"url": URL, "method": "GET\r\nA: b"}, "args.method"),
        ("http", {"url": URL, "headers": {"A\n": "b"}}, "args.headers"),
        ("http", {"url": URL, "headers": {"A": "b\r\nC: d"}}, "args.headers"),
        ("http", {"url": URL, "headers": {"A\n": SECRET}}, "args.headers"),
        ("http", {"url": URL, "headers": {"A": "\udc80"}}, "args.headers"),
        ("http", {"url": URL, "isolation": "strict"}, "args.isolation"),
        ("http", {"url": URL, "timeout": 0}, "args.timeout"),
    ],
)
def test_what_no_worker_could_do_is_refused_by_its_field(kind: str, args: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_call(kind, args)

    assert caught.value.field == field


def test_arguments_that_are_nested_too_deep_are_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(Invalid, match="args: must not be nested so deep"):
        check_call("command", {"argv": deep})


@pytest.mark.parametrize(
    ("args", "preempt"),
    [
        ("{}", "never"),
        ('{"preempt":"pause"}', "pause"),
        ('{"argv":["\\"preempt\\""]}', "never"),
        ('{"preempt":7}', "never"),
        ('{"preempt":', "never"),
    ],
)
def test_what_may_happen_to_a_command_is_read_from_its_arguments(args: str, preempt: str) -> None:
    assert preempt_in(args) == preempt

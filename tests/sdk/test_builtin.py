"""Jobs without a function."""

from typing import Any

import pytest

from tidewheel import App, Invalid, Priority


def test_a_command_is_a_list_of_words(app: App) -> None:
    job = app.command(["echo", "hello"], env={"A": "b"}, stdin="in", cwd="here", priority="high", name="greet")

    info = job.info()
    assert info.kind == "command"
    assert info.args == {"argv": ["echo", "hello"], "env": {"A": "b"}, "stdin": "in", "cwd": "here"}
    assert (info.priority, info.name) == (Priority.HIGH, "greet")


def test_an_http_call_is_stored_with_all_it_needs(app: App) -> None:
    job = app.http("post", "https://example.com/a", json={"n": 1}, answer_within="5s", ok_statuses={404}, queue="web")

    info = job.info()
    assert (info.kind, info.queue) == ("http", "web")
    assert info.args == {
        "method": "POST",
        "url": "https://example.com/a",
        "headers": {"Content-Type": "application/json"},
        "body": '{"n":1}',
        "timeout": 5.0,
        "ok_statuses": [404],
    }
    raw = app.http("PUT", "http://example.com", body=b"\xff", headers={"A": "b"}).info()
    assert raw.args == {"method": "PUT", "url": "http://example.com", "headers": {"A": "b"}, "body_base64": "/w=="}


async def test_the_async_face_does_the_same(app: App) -> None:
    assert (await (await app.acommand(["true"])).ainfo()).kind == "command"
    assert (await (await app.ahttp("GET", "http://example.com")).ainfo()).args["method"] == "GET"


def test_a_command_may_say_how_its_exit_codes_are_read_and_be_an_artifact(app: App) -> None:
    digest = "ab" * 32
    job = app.command([], artifact=digest, fatal_exit_codes={3}, ok_exit_codes=range(2))

    assert job.info().args == {"artifact": digest, "fatal_exit_codes": [3], "ok_exit_codes": [0, 1]}


@pytest.mark.parametrize(
    ("argv", "options", "field"),
    [
        ("echo hello", {}, "argv"),
        ([], {}, "argv"),
        ([""], {}, "argv"),
        (["a\0"], {}, "argv"),
        ([1], {}, "argv[0]"),
        (["a"], {"env": {"A=": "b"}}, "env"),
        (["a"], {"env": ["A"]}, "env"),
        (["a"], {"shell": True}, "shell"),
        (["a"], {"priority": "urgent"}, "priority"),
        (["a"], {"isolation": "some"}, "isolation"),
        (["a"], {"isolation": ["strict"]}, "isolation"),
        (["a"], {"preempt": "always"}, "preempt"),
    ],
)
def test_commands_that_cannot_be_started_are_refused(app: App, argv: Any, options: Any, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        app.command(argv, **options)

    assert caught.value.field == field


@pytest.mark.parametrize(
    ("url", "options", "field"),
    [
        ("ftp://example.com", {}, "url"),
        ("example.com", {}, "url"),
        ("http://example.com", {"body": "a", "json": 1}, "json"),
        ("http://example.com", {"headers": {"A B": "c"}}, "headers"),
        ("http://example.com", {"answer_within": "never"}, "answer_within"),
        ("http://example.com", {"answer_within": 0}, "timeout"),
        ("http://example.com", {"ok_statuses": ["x"]}, "ok_statuses[0]"),
        ("http://example.com", {"isolation": "strict"}, "isolation"),
        ("http://example.com", {"preempt": "requeue"}, "preempt"),
        ("http://example.com", {"verify": False}, "verify"),
    ],
)
def test_calls_that_cannot_be_made_are_refused(app: App, url: str, options: Any, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        app.http("GET", url, **options)

    assert caught.value.field == field


def test_a_command_may_ask_for_resources(app: App) -> None:
    job = app.command(["make"], resources={"cpu": 0.5, "memory": "64MiB"})

    info = job.info()
    assert info.needs.resources == {"cpu": 500, "memory": 64 << 20}
    assert info.args == {"argv": ["make"]}


@pytest.mark.parametrize("resources", [[1], {"gpu": -1}, {"memory": "x"}, {"cpu=1,gpu": 1}, None])
def test_resources_of_a_command_are_checked_as_those_of_a_task(app: App, resources: Any) -> None:
    with pytest.raises(Invalid) as caught:
        app.command(["make"], resources=resources)

    assert caught.value.field == "resources"


def test_a_command_may_say_how_far_it_is_kept_apart_and_for_whom_it_makes_way(app: App) -> None:
    job = app.command(["make"], isolation="strict", preempt="pause")

    assert job.info().args == {"argv": ["make"], "isolation": "strict", "preempt": "pause"}


def test_why_an_http_call_has_no_isolation_is_said(app: App) -> None:
    with pytest.raises(Invalid, match="isolation: is for commands: an HTTP call is made by the worker itself"):
        app.http("GET", "http://example.com", isolation="strict")  # type: ignore[call-arg] # that is the point

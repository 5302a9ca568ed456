"""Jobs that need no function: any executable, and an HTTP call."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.job import JobSpec
from tidewheel.model.secret import find_secrets
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.job import Job
from tidewheel.sdk.options import KNOWN, JobOptions, check_known, needs_of, spec_of
from tidewheel.tasks.binding import ENDLESS, without_secrets
from tidewheel.tasks.builtin import CallT, CommandCall, HttpCall, check_command, check_http, read_call
from tidewheel.tasks.definition import COMMAND, HTTP, Isolation, Preempt, TaskOptions
from tidewheel.tasks.durations import Duration, parse_duration


class CommandOptions(JobOptions, total=False):
    """What `app.command` takes."""

    env: Mapping[str, str]
    """Variables, besides the few that every command finds."""
    stdin: str
    cwd: str
    artifact: str
    """The SHA-256 of an uploaded file, which is the program if argv is empty or names it as `{artifact}`."""
    fatal_exit_codes: Iterable[int]
    """Exit codes after which another attempt cannot help; 75 always asks for one."""
    ok_exit_codes: Iterable[int]
    """Exit codes that are a success; 0 alone if it is not given."""
    resources: Mapping[str, int | float | str]
    """What a worker must have free for it, such as `{"memory": "2GiB"}`."""
    isolation: Isolation
    """How far it is kept apart; a worker gives no less than its operator wants."""
    preempt: Preempt
    """What may happen to it when a more urgent job is due and no slot is free."""


class HttpOptions(JobOptions, total=False):
    """What `app.http` takes."""

    headers: Mapping[str, str]
    body: str | bytes
    json: Any
    """In place of `body`: is sent as JSON."""
    answer_within: Duration
    """How long the whole call may take; 30 s if it is not given."""
    ok_statuses: Iterable[int]
    """Statuses that are a success besides 200 to 299."""
    retry_statuses: Iterable[int]
    """Statuses that are tried again besides 429 and 500 to 599, after the time that `Retry-After` says, if it does."""
    fatal_statuses: Iterable[int]
    """Statuses after which the job is given up, though they would be tried again."""
    follow_redirects: bool


class Request(NamedTuple):
    """A job of a built-in kind that is still to be enqueued."""

    desk: Desk
    spec: JobSpec
    connection: Any

    def enqueue(self) -> Job[Any]:
        """Enqueue it."""
        [answer] = self.desk.submit([self.spec], self.connection)
        return Job(self.desk, answer.job_id, created=answer.created)

    async def aenqueue(self) -> Job[Any]:
        """Enqueue it."""
        [answer] = await self.desk.asubmit([self.spec], self.connection)
        return Job(self.desk, answer.job_id, created=answer.created)


def command(desk: Desk, argv: Sequence[str], options: CommandOptions) -> Request:
    """Return a job that runs an executable."""
    if isinstance(argv, str | bytes):
        raise Invalid("argv", 'must be a list such as ["echo", "hello"]: there is no shell to split a text')
    own, wishes = _split(options)
    needs = needs_of(own.pop("resources", {}), {})
    codes = _lists(own, "fatal_exit_codes", "ok_exit_codes")
    fields = {**_lists({"argv": argv}, "argv"), **codes, **own}
    call = check_command(_checked(COMMAND, _plain(fields), CommandCall))
    return _request(desk, COMMAND, _args(call, fields), wishes, TaskOptions(needs=needs))


def http(desk: Desk, method: str, url: str, options: HttpOptions) -> Request:
    """Return a job that makes an HTTP call."""
    if not isinstance(method, str):
        raise Invalid("method", f"must be a word such as GET or POST, not {type(method).__name__}")
    own, wishes = _split(options)
    fields: dict[str, Any] = {
        "method": method.upper(),
        "url": url,
        **_lists(own, "ok_statuses", "retry_statuses", "fatal_statuses"),
        **_body(own),
    }
    if "answer_within" in own:
        fields["timeout"] = parse_duration(own.pop("answer_within"), "answer_within").total_seconds()
    fields |= own
    call = check_http(_checked(HTTP, _plain(fields), HttpCall))
    return _request(desk, HTTP, _args(call, fields), wishes)


def _args(call: msgspec.Struct, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that was checked; fields with secrets stay as they were given."""
    given = {name: value for name, value in fields.items() if find_secrets([value])}
    return {**msgspec.to_builtins(call), **given}


def _lists(own: dict[str, Any], *names: str) -> dict[str, Any]:
    """Take out what may be any iterable; a text or a mapping is one, too, but never meant as one."""
    given = {name: own.pop(name) for name in names if name in own}
    for name, value in given.items():
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            raise Invalid(name, f"must be a list, not {type(value).__name__}")
    return {name: list(value) for name, value in given.items()}


def _body(own: dict[str, Any]) -> dict[str, Any]:
    body = own.pop("body", None)
    given = own.pop("headers", {})
    if not isinstance(given, Mapping):
        raise Invalid("headers", f"must be a mapping of names to text, not {type(given).__name__}")
    headers = dict(given)
    if "json" in own:
        if body is not None:
            raise Invalid("json", "cannot be given together with body")
        body = _json_text(own.pop("json"))
        if not any(str(name).lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
    if isinstance(body, bytes):
        return {"headers": headers, "body_base64": base64.b64encode(body).decode()}
    return {"headers": headers, "body": body}


def _json_text(value: Any) -> str:
    try:
        if find_secrets([value]):
            raise Invalid("json", "cannot have secrets in it; send them in headers, or all of the body as a secret")
        return msgspec.json.encode(value).decode()
    except RecursionError:
        raise Invalid("json", ENDLESS) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise Invalid("json", f"is not JSON: {error}") from None


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as they can be checked, with some text in place of each secret."""
    plain = {}
    for name, value in fields.items():
        try:
            [plain[name]] = without_secrets([value])
        except RecursionError:
            raise Invalid(name, ENDLESS) from None
    return plain


def _split(options: Mapping[str, Any]) -> tuple[dict[str, Any], JobOptions]:
    wishes: JobOptions = {name: value for name, value in options.items() if name in KNOWN}  # type: ignore[assignment]
    return {name: value for name, value in options.items() if name not in KNOWN}, wishes


def _checked(kind: str, fields: Mapping[str, Any], shape: type[CallT]) -> CallT:
    for name in fields:
        if name not in shape.__struct_fields__ and name not in CommandOptions.__annotations__:
            check_known({name: None})
    return read_call(kind, fields, shape)


def _request(
    desk: Desk, kind: str, args: dict[str, Any], wishes: JobOptions, options: TaskOptions | None = None
) -> Request:
    spec = spec_of(kind, args, options or TaskOptions(), wishes, desk.now(), tenant=desk.tenant)
    return Request(desk, spec, wishes.get("connection"))

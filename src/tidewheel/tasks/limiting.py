"""What tasks declare about their limits, and how the keys of a job are told from its fields.

A key expression is text with fields in braces, such as `{args.account}:{tenant}`. It is taken apart once, when the task
is declared, and checked against the function; filling it in looks values up and evaluates nothing.
"""

import hashlib
import string
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.cap import CAP_MARK, Overflow
from tidewheel.model.checks import MAX_NAME, check_name, is_key, shown
from tidewheel.model.limit import VALUE_MARK, LimitRule, check_bounds, check_rule
from tidewheel.model.rate import Pace, parse_pace

PLAIN_FIELDS: Final = ("kind", "queue", "tenant", "schedule")
_LONGEST_VALUE: Final = 100
_DIGEST_BYTES: Final = 16
_LONGEST_NAME: Final = MAX_NAME - len(VALUE_MARK) - len("#") - 2 * _DIGEST_BYTES
"""So that there is room for a digest behind it."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode
_pieces: Final = string.Formatter().parse


class Concurrency(msgspec.Struct, frozen=True):
    """How many jobs may run at once: `Concurrency(2, key="{args.account}")`.

    Without a key all jobs of the task are counted together, for each tenant apart. Tasks that give the same `name`
    share the limit.
    """

    most: int
    key: str | None = None
    name: str | None = None


class Rate(msgspec.Struct, frozen=True):
    """How many jobs may start in a time: `Rate("100/m", burst=20, key="{args.user_id}")`.

    `burst` is how many may start at once after a pause; without it, as many as the pace allows in a second, but one at
    the least. Key and name as with `Concurrency`.
    """

    pace: str
    burst: int | None = None
    key: str | None = None
    name: str | None = None


class Cap(msgspec.Struct, frozen=True):
    """How many jobs may wait: `Cap(100, key="{args.account}", overflow="drop_oldest")`.

    `overflow` says what happens to one too many: `reject`, `drop_oldest` or `replace`. Key and name as with
    `Concurrency`; the names of caps are apart from those of other limits.
    """

    most: int
    key: str | None = None
    name: str | None = None
    overflow: Overflow = "reject"


class Field(NamedTuple):
    """A field of a key expression: where to look, and the names to follow from there."""

    where: str
    path: tuple[str, ...]


class KeyTemplate(NamedTuple):
    """A key expression that was taken apart: text and fields in turns."""

    pieces: tuple[str | Field, ...]

    def fill(self, values: Mapping[str, Any]) -> str:
        """Return the text for the fields of one job."""
        return "".join(
            piece if isinstance(piece, str) else _text(piece, _look_up(piece, values)) for piece in self.pieces
        )


class TaskLimit(NamedTuple):
    """One limit of a task: what is told to the store, and how the key of a job is found."""

    rule: LimitRule
    template: KeyTemplate | None = None

    def key_of(self, values: Mapping[str, Any]) -> str:
        """Return the limit key of a job with these fields; values that cannot stand in a key go in as a digest."""
        if self.template is None:
            return self.rule.name
        value = self.template.fill(values)
        if len(value) > min(_LONGEST_VALUE, MAX_NAME - len(self.rule.name) - 1) or not is_key(f"x{value}"):
            digest = hashlib.blake2b(value.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()
            value = f"#{digest}"
        return f"{self.rule.name}{VALUE_MARK}{value}"


def task_limits(
    kind: str, concurrency: object, rate: object, parameters: Collection[str] | None, cap: object = None
) -> tuple[TaskLimit, ...]:
    """Return the limits that a task declares, or say what is wrong with them.

    `parameters` are the names that a key may use of the arguments; None stands for any.
    """
    limits = []
    if concurrency is not None:
        wish = concurrency if isinstance(concurrency, Concurrency) else Concurrency(_most(concurrency))
        rule = LimitRule(_name("concurrency", wish.name or f"task:{kind}"), _most(wish.most))
        limits.append(TaskLimit(rule, _template("concurrency", wish.key, parameters)))
    if rate is not None:
        given = rate if isinstance(rate, Rate) else Rate(_pace(rate))
        rule = LimitRule(_name("rate", given.name or f"rate:{kind}"), rate=parse_pace(given.pace, given.burst))
        limits.append(TaskLimit(rule, _template("rate", given.key, parameters)))
    return (*_merged(limits), *([] if cap is None else [_task_cap(kind, cap, parameters)]))


def _task_cap(kind: str, cap: object, parameters: Collection[str] | None) -> TaskLimit:
    wish = cap if isinstance(cap, Cap) else Cap(cap)  # type: ignore[arg-type]  # what it is, is checked below
    name = _name("cap", f"{CAP_MARK}{wish.name or kind}")
    try:
        rule = check_rule(LimitRule(name, waiting=wish.most, overflow=wish.overflow))
    except Invalid as error:
        raise Invalid("cap", error.why if error.field == "waiting" else f"{error.field} {error.why}") from None
    return TaskLimit(rule, _template("cap", wish.key, parameters))


def check_alike(limits: Iterable[TaskLimit], others: Iterable[TaskLimit]) -> None:
    """Refuse limits that share a name with others and are not the same."""
    known = {limit.rule.name: limit.rule for limit in others}
    for limit in limits:
        other = known.get(limit.rule.name, limit.rule)
        if other != limit.rule:
            field = "cap" if limit.rule.waiting else "concurrency" if limit.rule.rate is None else "rate"
            raise Invalid(field, f"another task declares the limit {limit.rule.name!r} differently")


def parse_template(field: str, text: str, parameters: Collection[str] | None) -> KeyTemplate:
    """Take a key expression apart, or say what is wrong with it."""
    try:
        found = list(_pieces(text))
    except ValueError as error:
        raise Invalid(field, f"the key {text!r} is not well formed: {error}") from None
    pieces: list[str | Field] = []
    for literal, name, spec, conversion in found:
        if literal:
            pieces.append(literal)
        if name is not None:
            if spec or conversion:
                raise Invalid(field, f"the key {text!r} may only name fields, without a format")
            pieces.append(_field(field, name, parameters))
    if not any(isinstance(piece, Field) for piece in pieces):
        raise Invalid(field, f"the key {text!r} names no field; leave it out to count all jobs together")
    return KeyTemplate(tuple(pieces))


def _field(field: str, name: str, parameters: Collection[str] | None) -> Field:
    where, *path = name.split(".")
    if where in PLAIN_FIELDS and not path:
        return Field(where, ())
    if where == "args" and path and all(path):
        if parameters is not None and path[0] not in parameters:
            known = ", ".join(parameters) or "none"
            raise Invalid(field, f"the key names the argument {path[0]!r}, which there is not; there are: {known}")
        return Field(where, tuple(path))
    if where == "label" and path and all(path):
        return Field(where, (check_name(field, ".".join(path)),))
    plain = ", ".join(PLAIN_FIELDS)
    raise Invalid(field, f"the key names {name!r}; there are {plain}, args.<name> and label.<name>")


def _template(field: str, key: object, parameters: Collection[str] | None) -> KeyTemplate | None:
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= MAX_NAME:
        raise Invalid(field, f"the key must be text of 1 to {MAX_NAME} characters, not {shown(key)}")
    return parse_template(field, key, parameters)


def _merged(limits: list[TaskLimit]) -> tuple[TaskLimit, ...]:
    """Make one limit of two that have the same name."""
    if len(limits) < len({"concurrency", "rate"}) or limits[0].rule.name != limits[1].rule.name:
        return tuple(limits)
    first, second = limits
    if first.template != second.template:
        raise Invalid("rate", f"concurrency and rate have the name {first.rule.name!r} and must have the same key")
    return (TaskLimit(LimitRule(first.rule.name, first.rule.most, second.rule.rate), first.template),)


def _name(field: str, name: object) -> str:
    try:
        checked = check_name("name", name)
    except Invalid as error:
        raise Invalid(field, f"the name of the limit {error.why}") from None
    if len(checked) > _LONGEST_NAME:
        raise Invalid(field, f"the name of the limit must have at most {_LONGEST_NAME} characters, not {len(checked)}")
    return checked


def _most(value: object) -> int:
    if type(value) is not int:
        raise Invalid("concurrency", f"must be a whole number from 1 on, or a Concurrency, not {shown(value)}")
    try:
        check_bounds(value, None)
    except Invalid as error:
        raise Invalid("concurrency", error.why) from None
    return value


def _pace(value: object) -> str:
    if isinstance(value, Pace) or not isinstance(value, str):
        raise Invalid("rate", f"must be text such as 10/s, or a Rate, not {shown(value)}")
    return value


def _look_up(field: Field, values: Mapping[str, Any]) -> Any:
    value = values.get(field.where)
    for name in field.path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(field: Field, value: Any) -> str:
    """Return a value as part of a key; what is not there is an empty one."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        asked = "labels" if field.where == "label" else field.where
        why = f"{'.'.join(field.path)} is part of a key and must be JSON, not {shown(value)}"
        raise Invalid(asked, why) from None

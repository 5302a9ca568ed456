"""Reading requests strictly: what is not exactly what the docs say is refused, with the place where it is wrong."""

import json
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import MAX_JSON_DEPTH, MAX_NAME, check_key, is_shallow, outside_strings
from tidewheel.server.flaws import MOST_FLAWS, flaws_of, told_by
from tidewheel.server.problems import Flaw, Refused

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
MOST_DEPTH: Final = MAX_JSON_DEPTH + 8
"""Arguments may be as deep as the model allows, inside of what they are arguments of."""
MOST_VALUES: Final = 1_000_000
"""How many values a body may have in all; each takes many times the bytes in memory that it takes on the way."""
BLANK_LINES: Final = 10
"""How many times as many lines there may be as may say something."""
MOST_WAIT: Final = 60
_MOST_PARAMETERS: Final = 50

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_WAIT: Final = re.compile(r"wait\s*=\s*([0-9]{1,9})", re.IGNORECASE)


# Bodies


def check_media_type(headers: Mapping[str, str], allowed: tuple[str, ...]) -> str:
    """Return the content type, which must be one of those allowed; a body must not be compressed."""
    sent = headers.get("content-type", "")
    media, _, parameters = sent.partition(";")
    media = media.strip().lower()
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media not in allowed or charset not in ("", "utf-8", "utf8"):
        raise Refused("unsupported-media-type", f"must be {' or '.join(allowed)} in UTF-8, not {sent[:100]!r}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused("unsupported-media-type", "a compressed body is not accepted")
    return media


def values_of(raw: bytes) -> int:
    """Return how many values a JSON text has at most: a guess that is too high if strings have commas or brackets."""
    return raw.count(b",") + raw.count(b"{") + raw.count(b"[")


def check_amount(raw: bytes, most_lines: int | None) -> None:
    """Refuse a body that would become too much when it is read; empty lines do not count, within reason."""
    if most_lines is not None and (lines := raw.count(b"\n")) > most_lines * BLANK_LINES:
        raise Refused("too-large", f"at most {most_lines} lines, not {lines}")
    if len(raw) <= MOST_VALUES:  # each value has a byte of its own
        return
    if values_of(raw) > MOST_VALUES and (values := values_of(outside_strings(raw))) > MOST_VALUES:
        raise Refused("too-large", f"at most {MOST_VALUES} values in all, not {values}")


def decode_json(raw: bytes) -> Any:
    """Return the value of a JSON text; twin keys, deep nesting and numbers beyond 64 bits are refused."""
    try:
        value = _decode(raw)
        if raw.count(b"[") + raw.count(b"{") > MOST_DEPTH and not is_shallow(raw, MOST_DEPTH):
            raise _malformed(f"it is nested more than {MOST_DEPTH} levels deep")
        if _has_twins(raw, value):
            raise _malformed(f"the key {_twin(raw)!r} stands twice in one object")
    except RecursionError:
        raise _malformed(f"it is nested more than {MOST_DEPTH} levels deep") from None
    except OverflowError:
        raise _malformed("it holds a whole number beyond 64 bits; send that as text") from None
    except UnicodeError:
        raise _malformed("it is not valid UTF-8") from None
    except msgspec.DecodeError as error:
        words, pointer = told_by(error)
        raise _malformed(words, pointer) from None
    return value


def decode_lines(raw: bytes, most: int) -> list[Any]:
    """Return the values of lines of JSON; empty lines do not count."""
    lines = [line for line in raw.split(b"\n") if line.strip()]
    if len(lines) > most:
        raise Refused("too-large", f"at most {most} lines, not {len(lines)}")
    for number, line in enumerate(lines):
        if not (line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")):
            raise _bad_line(number, "must be a JSON object")
    try:
        values: list[Any] = decode_json(b"[" + b",".join(lines) + b"]")
    except Refused:
        values = []
    if len(values) == len(lines):
        return values
    for number, line in enumerate(lines):
        try:
            decode_json(line)
        except Refused as refused:
            raise _bad_line(number, refused.flaws[0].detail) from None
    raise _malformed("the lines make no sense together")


def _bad_line(number: int, why: str) -> Refused:
    return Refused("malformed", f"line {number + 1}: {why}", flaws=[Flaw(detail=why, pointer=f"/{number}")])


def convert(value: Any, kind: Any) -> Any:
    """Return what a decoded body stands for; raises Refused with pointers to all that does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        words, pointer = told_by(error)
        flaws = list(islice(flaws_of(value, kind), MOST_FLAWS))
        raise Refused("invalid", words, flaws=flaws or [Flaw(detail=words, pointer=pointer)]) from None


def _malformed(why: str, pointer: str = "") -> Refused:
    return Refused(
        "malformed", f"the body is not JSON as it should be: {why}", flaws=[Flaw(detail=why, pointer=pointer)]
    )


def _has_twins(raw: bytes, value: Any) -> bool:
    """Tell whether a key stands twice in one object: of these only the last is left in the value."""
    again = _encode(value)
    if b"\\" not in raw and raw.count(b":") == again.count(b":"):  # then each string is written as it was
        return False
    return _keys_of(raw) != _keys_of(again)


def _keys_of(raw: bytes) -> int:
    """Count the keys of all objects of a JSON text: the colons outside of strings."""
    return outside_strings(raw).count(b":")


def _twin(raw: bytes) -> str:
    twins: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twins.extend(name for name in found if names.count(name) > 1)
        return found

    json.loads(raw, object_pairs_hook=note)
    return twins[0][:100] if twins else ""


# Queries and headers


def read_query(raw: bytes, kind: Any) -> Any:
    """Return what a query string stands for; raises Refused for parameters that are unknown, doubled or wrong."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise Refused("bad-parameter", "the query is not valid UTF-8 in percent-encoding, or too long") from None
    given = dict(pairs)
    if len(given) < len(pairs):
        twin = next(name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1)
        raise bad_parameter(twin, "is given twice")
    try:
        query = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        words, pointer = told_by(error)
        raise bad_parameter(pointer.removeprefix("/"), words) from None
    for field in msgspec.structs.fields(kind):
        if field.encode_name in given and getattr(query, field.name) is None:
            raise bad_parameter(field.encode_name, "must be left out or have a value, and not be null")
    return query


def parameter(check: Callable[[], Any]) -> Any:
    """Return what a check of the model returns; what it refuses was a query parameter."""
    try:
        return check()
    except Invalid as error:
        raise bad_parameter(error.field, error.why) from None


def bad_parameter(name: str, why: str) -> Refused:
    """Return the refusal of a query parameter."""
    return Refused("bad-parameter", f"{name[:100]}: {why}", flaws=[Flaw(detail=why, parameter=name[:100])])


def read_wait(headers: Mapping[str, str]) -> int:
    """Return how many seconds a client wants to wait by `Prefer: wait=…`; other preferences are passed over."""
    if (preferences := headers.get("prefer")) is None:
        return 0
    for preference in preferences.split(","):
        if found := _WAIT.fullmatch(preference.strip()):
            return min(int(found[1]), MOST_WAIT)
    return 0


def read_key(headers: Mapping[str, str], most: int = MAX_NAME) -> str | None:
    """Return the idempotency key, with or without the quotes of a structured field."""
    sent = headers.get("idempotency-key")
    if sent is None:
        return None
    key = sent[1:-1] if len(sent) > 1 and sent[0] == sent[-1] == '"' else sent
    try:
        check_key("Idempotency-Key", key)
    except Invalid as error:
        raise _bad_key(error.why) from None
    if len(key) > most:
        raise _bad_key(f"must have at most {most} characters here, not {len(key)}")
    return key


def _bad_key(why: str) -> Refused:
    return Refused("bad-header", f"Idempotency-Key: {why}", flaws=[Flaw(detail=why, header="Idempotency-Key")])

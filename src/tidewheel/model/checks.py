"""What may be stored: every check of outside input, each naming the field and saying the reason in plain words.

Three rules stand behind all of them. What is accepted comes back unchanged from every store. What no store can keep
(NUL, half surrogate pairs, NaN) is refused at the door and not at the commit. And a name has one spelling, so that two
jobs that look alike are alike.
"""

import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final, NoReturn

import msgspec

from tidewheel.errors import Invalid

MAX_NAME: Final = 200
MAX_LABELS: Final = 32
MAX_JSON_BYTES: Final = 256 * 1024
MAX_JSON_DEPTH: Final = 64
MAX_DELAY: Final = timedelta(days=3650)
FIRST_INSTANT: Final = datetime(2000, 1, 1, tzinfo=UTC)
LAST_INSTANT: Final = datetime(2200, 1, 1, tzinfo=UTC)

LEAST_INT: Final = -(2**63)
MOST_INT: Final = 2**64 - 1
"""Larger numbers are safe in Python alone; a worker in another language would fail on the whole job."""

NAME_MARKS: Final = "._:/@-"
_QUOTED: Final = 40
_BLOCK: Final = 256 * 1024
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@-]{0,199}").fullmatch
_NOT_IN_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]").search
_NOT_IN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]").search
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


# Names and text


def check_name(field: str, value: object) -> str:
    """Return a name of a kind, queue, tenant, schedule, resource or label.

    One to 200 letters and digits of any script and the marks `. _ : / @ -`, beginning with a letter, a digit or `_`: so
    dotted Python paths, addresses and paths are names, while whatever needs quoting in a shell, a URL query or a list
    separated by commas is not. Letters with accents must be composed (NFC), for else one name would have two spellings.
    """
    if why := _why_no_name(value):
        raise Invalid(field, why)
    return str(value)


def check_key(field: str, value: object) -> str:
    """Return a key that its user is free to choose: one to 200 characters in one line, no blanks at its ends."""
    if why := _why_no_key(value):
        raise Invalid(field, why)
    return str(value)


def is_key(value: object) -> bool:
    """Tell whether `check_key` would accept it."""
    return _why_no_key(value) is None


def check_text(field: str, value: object, max_length: int) -> str:
    """Return text for people, such as a description or a reason; it may be empty and have several lines."""
    if not isinstance(value, str):
        raise Invalid(field, f"must be text, not {_type_of(value)}")
    if len(value) > max_length:
        raise Invalid(field, f"must have at most {max_length} characters, not {len(value)}")
    if found := _NOT_IN_TEXT(value):
        raise Invalid(field, f"must not contain {_describe(found[0])}")
    return value


def is_storable(value: str) -> bool:
    """Tell whether every store can hold a text as it is; faster than by a pattern."""
    if "\0" in value:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_text(value: str, max_length: int) -> str:
    """Make any text storable, for what cannot be refused, such as the message of an error that a task raised."""
    clean = _UNSTORABLE.sub("\ufffd", value)
    return clean if len(clean) <= max_length else clean[: max_length - 1] + "…"


def check_labels(field: str, labels: object) -> str:
    """Return the JSON text of labels: at most 32 names, each with a line of up to 200 characters, maybe empty."""
    if not isinstance(labels, Mapping):
        raise Invalid(field, f"must be a mapping of names to text, not {_type_of(labels)}")
    if len(labels) > MAX_LABELS:
        raise Invalid(field, f"must be at most {MAX_LABELS}, not {len(labels)}")
    for name, value in labels.items():
        if why := _why_no_name(name):
            raise Invalid(field, f"the name {shown(name)} {why}")
        if value != "" and (why := _why_no_key(value)):
            raise Invalid(field, f"the value of {name} {why}")
    return _encode(dict(labels)).decode()


def _why_no_name(value: object) -> str | None:
    if isinstance(value, str) and _PLAIN_NAME(value):
        return None
    if why := _why_no_key(value):
        return why
    name = str(value)
    if not (name[0] == "_" or name[0].isalnum()):
        return f"must begin with a letter, a digit or _, not with {name[0]!r}"
    for char in name:
        if not (char.isalnum() or char in NAME_MARKS or unicodedata.category(char)[0] == "M"):
            return f"must consist of letters, digits and the marks {' '.join(NAME_MARKS)}, without {char!r}"
    if not unicodedata.is_normalized("NFC", name):
        return "must have its accents composed with their letters (Unicode NFC)"
    return None


def _why_no_key(value: object) -> str | None:
    if not isinstance(value, str):
        return f"must be text, not {_type_of(value)}"
    if not value:
        return "must not be empty"
    if len(value) > MAX_NAME:
        return f"must have at most {MAX_NAME} characters, not {len(value)}"
    if found := _NOT_IN_LINE(value):
        return f"must not contain {_describe(found[0])}"
    if value != value.strip():
        return "must not begin or end with a blank"
    return None


def _describe(char: str) -> str:
    if char == "\0":
        return "the NUL character"
    if "\ud800" <= char <= "\udfff":
        return "half of a surrogate pair"
    return f"the control character U+{ord(char):04X}"


def shown(value: object) -> str:
    """Return the beginning of a value for an error; the kind of one that cannot be shown, such as one without end."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - it may be code of the user, or nested too deep
        text = f"this {type(value).__name__}"
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


def _type_of(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def check_count(field: str, value: object, least: int, most: int) -> int:
    """Return a whole number within a range; `True` is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Invalid(field, f"must be a whole number, not {_type_of(value)}")
    if not least <= value <= most:
        raise Invalid(field, f"must be between {least} and {most}, not {value}")
    return value


# JSON

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_BRACES_TO_BRACKETS = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def check_json(field: str, value: object, max_bytes: int = MAX_JSON_BYTES, max_depth: int = MAX_JSON_DEPTH) -> str:
    """Return the compact JSON text of a value that is JSON and nothing more; keys keep their order.

    The encoder is kinder than we are: it turns NaN into null, numbers that are keys into text, and dates, bytes and
    sets into something that does not come back as it went. So the text is read again and compared, which costs less
    than looking at each value; only if something differs or looks odd are they looked at one by one. Tuples pass, and
    come back as lists.
    """
    try:
        data = _encode(value)
        text = data.decode()
    except RecursionError:
        _refuse_depth(field, max_depth)
    except (TypeError, ValueError, OverflowError) as error:
        _look_closely(field, value, max_depth)
        raise Invalid(field, f"is not JSON: {error}") from error
    if len(data) > max_bytes:
        raise Invalid(field, f"must have at most {max_bytes} bytes as JSON, not {len(data)}")
    if text.count("[") + text.count("{") > max_depth and not is_shallow(data, max_depth):
        _refuse_depth(field, max_depth)
    if "\\u0000" in text or _LONG_NUMBER in data.translate(_DIGITS_TO_ZERO) or not _comes_back(data, value):
        _look_closely(field, value, max_depth)
    return text


def check_json_text(
    field: str, text: str | bytes, max_bytes: int = MAX_JSON_BYTES, max_depth: int = MAX_JSON_DEPTH
) -> str:
    """Return JSON that came as text in compact form, under the rules of `check_json`; of twin keys the last wins."""
    if len(text) > max_bytes:
        raise Invalid(field, f"must have at most {max_bytes} bytes as JSON, not {len(text)}")
    try:
        value = _decode(text)
    except RecursionError:
        _refuse_depth(field, max_depth)
    except UnicodeError as error:
        raise Invalid(field, "is not JSON: it is not valid UTF-8") from error
    except msgspec.DecodeError as error:
        raise Invalid(field, f"is not JSON: {error}") from error
    return check_json(field, value, max_bytes, max_depth)


def check_json_bytes(field: str, data: bytes, max_depth: int = MAX_JSON_DEPTH) -> None:
    """Refuse bytes that are not JSON, without making values of them, which could take many times their room."""
    try:
        data.decode()
        msgspec.json.decode(data, type=msgspec.Raw)
    except RecursionError:
        _refuse_depth(field, max_depth)
    except UnicodeError as error:
        raise Invalid(field, "is not JSON: it is not valid UTF-8") from error
    except msgspec.DecodeError as error:
        raise Invalid(field, f"is not JSON: {error}") from error
    if not is_shallow(data, max_depth):
        _refuse_depth(field, max_depth)


def _refuse_depth(field: str, max_depth: int) -> NoReturn:
    raise Invalid(field, f"must not be nested more than {max_depth} levels deep, or contain itself") from None


def _comes_back(data: bytes, value: object) -> bool:
    try:
        return bool(_decode(data) == value)
    except msgspec.DecodeError:
        return False


def outside_strings(data: bytes) -> bytes:
    """Return what stands outside of the strings of a JSON text; block by block, for it may have millions of them."""
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    blocks, inside = [], 0
    for start in range(0, len(unescaped), _BLOCK):
        parts = unescaped[start : start + _BLOCK].split(b'"')
        blocks.append(b"".join(parts[inside::2]))
        inside = (inside + len(parts) - 1) % 2
    return b"".join(blocks)


def is_shallow(data: bytes, max_depth: int) -> bool:
    """Tell whether valid JSON is nested at most so deep, in a few passes that do not depend on Python's stack."""
    brackets = outside_strings(data).translate(_BRACES_TO_BRACKETS, _ALL_BUT_BRACKETS)
    for _ in range(max_depth):
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")  # each pass takes the innermost level away
    return not brackets


def _look_closely(field: str, value: object, max_depth: int) -> None:
    """Refuse the first part that is not JSON and say where it is; a list of what is unseen serves as the stack."""
    unseen: list[tuple[Any, tuple[object, ...]]] = [(value, ())]
    while unseen:
        part, path = unseen.pop()
        if len(path) > max_depth:
            _refuse_depth(field, max_depth)
        if isinstance(part, dict):
            for key in part:
                if why := _why_no_json_key(key):
                    raise Invalid(field, f"{_at(path)}a key {why}")
            unseen += [(inner, (*path, key)) for key, inner in part.items()]
        elif isinstance(part, list | tuple):
            unseen += [(inner, (*path, index)) for index, inner in enumerate(part)]
        elif why := _why_no_json_value(part):
            raise Invalid(field, _at(path) + why)


def _why_no_json_key(key: object) -> str | None:
    plain = key.value if isinstance(key, Enum) and isinstance(key, str) else key
    if type(plain) is not str:
        return f"must be text, not {_type_of(plain)} ({shown(plain)})"
    return f"must not contain {_describe(found[0])}" if (found := _UNSTORABLE.search(plain)) else None


def _why_no_json_value(part: object) -> str | None:
    plain = part.value if isinstance(part, Enum) and isinstance(part, str | int) else part
    if plain is None or type(plain) is bool:
        return None
    if type(plain) is str:
        return f"must not contain {_describe(found[0])}" if (found := _UNSTORABLE.search(plain)) else None
    if type(plain) is int:
        return (
            None if LEAST_INT <= plain <= MOST_INT else "must not hold whole numbers beyond 64 bits; send them as text"
        )
    if type(plain) is float:
        # Infinity minus itself is NaN, too, and NaN differs from all numbers.
        return None if plain - plain == 0 else f"must not hold {plain}, which is no number in JSON"
    return f"must be made of JSON values, without {type(plain).__name__}; send it as text or number"


def _at(path: tuple[object, ...]) -> str:
    return f"at {''.join(f'[{shown(step)}]' for step in path)}: " if path else ""


# Time

_UNITS: Final = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
}
_DURATION = re.compile("".join(f"(?:([0-9]{{1,15}}){unit})?" for unit in _UNITS)).fullmatch


def check_instant(field: str, value: object) -> datetime:
    """Return an instant between 2000 and 2200 in UTC; it must say its time zone."""
    if not isinstance(value, datetime):
        raise Invalid(field, f"must be a date and time, not {_type_of(value)}")
    if value.utcoffset() is None:
        raise Invalid(field, "must have a time zone")
    if not FIRST_INSTANT <= value < LAST_INSTANT:
        raise Invalid(field, f"must lie between the years 2000 and 2200, not in {value.year}")
    return value.astimezone(UTC)


def check_window(
    start: datetime | None, end: datetime | None, fields: tuple[str, str] = ("start", "end")
) -> tuple[datetime | None, datetime | None]:
    """Return the two ends of a window in UTC, either of which may be open; it must not be empty."""
    first = None if start is None else check_instant(fields[0], start)
    last = None if end is None else check_instant(fields[1], end)
    if first is not None and last is not None and last <= first:
        raise Invalid(fields[1], f"must be later than {fields[0]} ({first.isoformat()})")
    return first, last


def check_duration(field: str, value: object, least: timedelta, most: timedelta) -> timedelta:
    """Return a duration that is neither shorter than `least` nor longer than `most`."""
    if not isinstance(value, timedelta):
        raise Invalid(field, f"must be a duration, not {_type_of(value)}")
    if not least <= value <= most:
        raise Invalid(
            field,
            f"must be between {duration_text(least)} and {duration_text(most)}, not {duration_text(value)}",
        )
    return value


def check_delay(field: str, value: object) -> timedelta:
    """Return a delay from now: not negative and at most ten years."""
    return check_duration(field, value, timedelta(0), MAX_DELAY)


def parse_duration(value: object, field: str = "duration") -> timedelta:
    """Return the duration that `500ms`, `5s`, `1h30m` or `2d` stands for, larger units first; a timedelta stays itself.

    Whole numbers only, so that what is stored is what was written.
    """
    if isinstance(value, timedelta):
        return value
    found = _DURATION(value) if isinstance(value, str) else None
    if not found or not value:
        raise Invalid(field, f"must be a duration such as 500ms, 5s, 1h30m, 2d or 1w, not {shown(value)}")
    try:
        parts = zip(found.groups(), _UNITS.values(), strict=True)
        return sum((int(number) * unit for number, unit in parts if number), timedelta(0))
    except OverflowError:
        raise Invalid(field, f"{shown(value)} is longer than any duration can be") from None


def duration_text(value: timedelta) -> str:
    """Return a duration in the form that `parse_duration` reads, with a minus sign if it is negative."""
    if value < timedelta(0):
        return "-" + duration_text(-value)
    text = ""
    for name, unit in _UNITS.items():
        if name != "w" or value % unit == timedelta(0):  # 10d reads better than 1w3d
            number, value = divmod(value, unit)
            text += f"{number}{name}" if number else ""
    return text or "0s"

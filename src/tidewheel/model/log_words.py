"""What can be searched for in lines: their words, the fields of lines that are JSON objects, and their levels."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

MAX_WORD: Final = 64
"""Characters of a word by which it is found; what differs only behind them is told apart by looking at the lines."""
LEVELS: Final = ("debug", "info", "warning", "error", "critical")
"""By their weight."""
MAX_FIELDS: Final = 50
_MAX_DEPTH: Final = 4
_SAME: Final[Mapping[str, str]] = {
    "trace": "debug",
    "notice": "info",
    "warn": "warning",
    "err": "error",
    "fatal": "critical",
    "crit": "critical",
    "emergency": "critical",
    "alert": "critical",
}
_LEVEL_FIELDS: Final = ("level", "levelname", "severity", "lvl")
_NUMBERED: Final[Mapping[object, str]] = {
    10: "debug",
    20: "debug",
    30: "info",
    40: "warning",
    50: "error",
    60: "critical",
}
"""What pino and bunyan write to the field `level`."""

words_in: Final = re.compile(r"\w+").findall
"""The words of a text, which must be in lower case."""
_TEXT_VALUE: Final = re.compile(r'(?!/)[^\w\s"]{0,2}(\w+)')
"""What makes a pair of what stands behind a colon: a word, soon."""
_PAIRS: Final = re.compile(rf":(?<=[\w.-]:)(?={_TEXT_VALUE.pattern})").finditer
_NAME_BACKWARDS: Final = re.compile(r"[\w.-]*[a-z_](?![\w.-])").match
_MAX_NAME: Final = 512
"""More than a query may have."""
_NO_TOKEN: Final = re.compile(r"[^\w.:=/-]")
_decode: Final = msgspec.json.Decoder().decode


def token_of(text: str) -> str:
    """Return how a text that is not a word stands in an index: in lower case, without what indexes may stumble over."""
    return _NO_TOKEN.sub("_", text.lower())[: 2 * MAX_WORD]


def fields_of(text: str) -> dict[str, Any]:
    """Return the fields of a line that is a JSON object, those of inner ones with a dot; of other lines none."""
    if not (text.startswith("{") and text.endswith("}")):
        return {}
    try:
        value = _decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return {}
    fields: dict[str, Any] = {}
    for name, inner in _flat(value, "", 1):
        if len(fields) == MAX_FIELDS:
            break
        fields[name] = inner
    return fields


def level_of(level: str | None, fields: Mapping[str, Any]) -> str | None:
    """Return the level of a line by its usual name: what the logger said, or else what a field says."""
    named = level or next((fields[name] for name in _LEVEL_FIELDS if isinstance(fields.get(name), str)), None)
    if named is None:
        return _NUMBERED.get(fields.get("level"))
    lower = str(named).lower()
    return _SAME.get(lower, lower)


def levels_from(level: str) -> tuple[str, ...]:
    """Return this level and those of more weight."""
    usual = _SAME.get(level.lower(), level.lower())
    return LEVELS[LEVELS.index(usual) :] if usual in LEVELS else (usual,)


def field_tokens(fields: Mapping[str, Any]) -> list[str]:
    """Return how fields stand in an index."""
    return [token_of(f"{name}:{said(value)}") for name, value in fields.items()]


def pair_token(name: str, value: str) -> str | None:
    """Return how a text such as `localhost:5432` stands in an index, by its first word; None if it does not."""
    found = _TEXT_VALUE.match(value)
    return None if found is None else f"{name}:{found[1]}"[: 2 * MAX_WORD]


def pair_tokens(lower: str) -> Iterator[str]:
    """Return how all such texts in this one, which must be in lower case, stand in an index."""
    before = 0
    for found in _PAIRS(lower):
        end = found.start()
        # From the colon, of which there are few, and at most to the one before it, which is in no name.
        name = _NAME_BACKWARDS(lower[max(before, end - _MAX_NAME) : end][::-1])
        before = end + 1
        if name is not None:
            yield f"{name[0][::-1]}:{found[1]}"[: 2 * MAX_WORD]


def words_to_index(texts: Sequence[str], levels: Iterable[str | None]) -> set[str]:
    """Return all by which these lines can be found."""
    lower = "\n".join(texts).lower()
    words = {word[:MAX_WORD] for word in words_in(lower)}
    words.update(pair_tokens(lower))
    named: set[str | None] = set()
    for text, level in zip(texts, levels, strict=True):
        if fields := fields_of(text):
            words.update(field_tokens(fields))
            named.add(level_of(level, fields))
        else:
            named.add(level)
    words.update(token_of(f"level={level_of(level, {})}") for level in named if level is not None)
    return words


def said(value: Any) -> str:
    """Return the value of a field as a query has it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _flat(value: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict) and depth < _MAX_DEPTH:
            yield from _flat(inner, f"{prefix}{name}.", depth + 1)
        elif not isinstance(inner, list | dict):
            yield f"{prefix}{name}", inner

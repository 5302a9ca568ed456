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

words_in: Final = re.compile(r"\w+").findall
"""The words of a text, which must be in lower case."""
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
        return None
    lower = str(named).lower()
    return _SAME.get(lower, lower)


def levels_from(level: str) -> tuple[str, ...]:
    """Return this level and those of more weight."""
    usual = _SAME.get(level.lower(), level.lower())
    return LEVELS[LEVELS.index(usual) :] if usual in LEVELS else (usual,)


def field_tokens(fields: Mapping[str, Any]) -> list[str]:
    """Return how fields stand in an index."""
    return [token_of(f"{name}:{_said(value)}") for name, value in fields.items()]


def words_to_index(texts: Sequence[str], levels: Iterable[str | None]) -> set[str]:
    """Return all by which these lines can be found."""
    words = {word[:MAX_WORD] for word in words_in("\n".join(texts).lower())}
    said: set[str | None] = set()
    for text, level in zip(texts, levels, strict=True):
        if fields := fields_of(text):
            words.update(field_tokens(fields))
            said.add(level_of(level, fields))
        else:
            said.add(level)
    words.update(token_of(f"level={level_of(level, {})}") for level in said if level is not None)
    return words


def _said(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _flat(value: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict) and depth < _MAX_DEPTH:
            yield from _flat(inner, f"{prefix}{name}.", depth + 1)
        elif not isinstance(inner, list | dict):
            yield f"{prefix}{name}", inner

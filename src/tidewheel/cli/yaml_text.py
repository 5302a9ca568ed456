"""JSON values as YAML, in the plain block form that people like to read; what could be misread is quoted."""

import json
import re
from collections.abc import Iterator
from typing import Any

_plain = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*").fullmatch
_OTHERS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""Words that some readers take for something else than text."""


def yaml_text(value: Any) -> str:
    """Return a value of plain dicts, lists, texts and numbers as YAML."""
    return "\n".join(_lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _under(f"{_scalar(str(key))}:", inner, indented=isinstance(inner, dict))
    elif isinstance(value, list) and value:
        for inner in value:
            first, *rest = _lines(inner)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _under(head: str, value: Any, *, indented: bool) -> Iterator[str]:
    if not isinstance(value, dict | list) or not value:
        yield f"{head} {_scalar(value)}"
        return
    yield head
    yield from (f"  {line}" if indented else line for line in _lines(value))


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _plain(value) and value.lower() not in _OTHERS:
        return value
    return json.dumps(value)

"""All that is wrong with a body, once something is: whoever mends it wants to hear of everything at once.

Only asked after the first fault was found, so what is good pays nothing for it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin

import msgspec

from tidewheel.server.problems import Flaw, pointer_of

MOST_FLAWS: Final = 20
"""How many are told; who has more has enough to do."""
_AT: Final = re.compile(r"(?s)(.*?)(?: - at `(?:key in )?\$([^`]*)`)?")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`")
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")


def flaws_of(value: Any, kind: Any, at: str = "") -> Iterator[Flaw]:
    """Return what does not fit the type of a body, each with the pointer to it."""
    if get_origin(kind) is list and isinstance(value, list):
        for number, item in enumerate(value):
            yield from flaws_of(item, get_args(kind)[0], f"{at}/{number}")
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
        yield from _fields_of(value, kind, at)
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            words, pointer = told_by(error)
            yield Flaw(detail=words, pointer=at + pointer)


def _fields_of(value: dict[str, Any], kind: type[msgspec.Struct], at: str) -> Iterator[Flaw]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name, field in fields.items():
        if name in value:
            yield from flaws_of(value[name], field.type, at + _step(name))
        elif field.required:
            yield Flaw(detail=f"Object missing required field '{name}'", pointer=at + _step(name))
    if kind.__struct_config__.forbid_unknown_fields:
        for name in value:
            if name not in fields:
                yield Flaw(detail=f"Object contains unknown field '{name[:100]}'", pointer=at + _step(name))


def told_by(error: msgspec.DecodeError) -> tuple[str, str]:
    """Return what the decoder says, and the pointer to where."""
    found = _AT.fullmatch(str(error))
    words, path = (found[1], found[2] or "") if found else (str(error), "")
    named = _UNKNOWN.fullmatch(words) or _MISSING.fullmatch(words)
    return words.replace("`", "'"), pointer_of(path) + (_step(named[1]) if named else "")


def _step(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")

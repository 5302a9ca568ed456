"""Secrets by name: an argument that is `{"$secret": "name"}` stands for a text that only the task is to see."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tidewheel.errors import Invalid

REFERENCE: Final = "$secret"
VARIABLE: Final = "TIDE_SECRET_"
"""What the variables of secrets begin with."""
MAX_SECRET: Final = 64 * 1024
"""How many bytes the text of a secret may have."""
LEAST_SECRET: Final = 4
"""Shorter texts are not masked: they would tear up all other text, and guessing them is easy anyway."""

_is_name = re.compile("[a-z][a-z0-9_]{0,63}").fullmatch


def check_secret_name(name: object, field: str = "secret") -> str:
    """Return the name of a secret: it must do as part of a variable and as a file, with one spelling."""
    if not isinstance(name, str) or not _is_name(name):
        raise Invalid(field, "must be named by up to 64 small letters, digits and _, beginning with a letter")
    return name


def text_of(data: bytes) -> str:
    """Return the text that a file holds, without one line end at its end. Raises ValueError, which shows nothing."""
    if len(data) > MAX_SECRET:
        raise ValueError(f"has more than {MAX_SECRET} bytes")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise ValueError("is no text in UTF-8") from None


def flaw_of_text(text: object) -> str | None:
    """Tell what is wrong with the text of a secret, without showing any of it; None if nothing is."""
    if not isinstance(text, str):
        return f"must be text, not {type(text).__name__}"
    if len(text) < LEAST_SECRET:
        return f"has fewer than {LEAST_SECRET} characters, and could not be kept out of logs"
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
        return "is no text that could be handed over"
    return f"has more than {MAX_SECRET} bytes" if len(text.encode()) > MAX_SECRET else None


def reference_to(name: str) -> dict[str, str]:
    """Return what stands for a secret in arguments."""
    return {REFERENCE: check_secret_name(name)}


def variable_of(name: str) -> str:
    """Return the variable of a worker's environment that holds a secret."""
    return VARIABLE + name.upper()


def find_secrets(args: Any) -> list[str]:
    """Return the secrets that stand in arguments, each once; refuse what only looks like a reference."""
    if isinstance(args, Mapping) and REFERENCE in args:
        raise Invalid("args", f"{REFERENCE} stands for the value of an argument, not for all of them")
    return list(dict.fromkeys(_secrets(args)))


def fill_secrets(args: Any, values: Mapping[str, str]) -> Any:
    """Return arguments in which texts stand in place of the secrets; `values` must have them all."""
    if isinstance(args, Mapping):
        if REFERENCE in args:
            return values[_named(args)]
        return {name: fill_secrets(value, values) for name, value in args.items()}
    if isinstance(args, list | tuple):
        return [fill_secrets(value, values) for value in args]
    return args


def _secrets(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if REFERENCE in value:
            yield _named(value)
            return
        for inner in value.values():
            yield from _secrets(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets(inner)


def _named(value: Mapping[str, Any]) -> str:
    if len(value) != 1:
        raise Invalid("args", f"{REFERENCE} must stand alone in its object, with the name of a secret")
    return check_secret_name(value[REFERENCE], "args")

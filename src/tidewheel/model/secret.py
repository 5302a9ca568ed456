"""Secrets by name: an argument that is `{"$secret": "name"}` stands for a text that only the task is to see."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tidewheel.errors import Invalid

REFERENCE: Final = "$secret"
VARIABLE: Final = "TIDE_SECRET_"
"""What the variables of secrets begin with."""

_is_name = re.compile("[a-z][a-z0-9_]{0,63}").fullmatch


def check_secret_name(name: object, field: str = "secret") -> str:
    """Return the name of a secret: it must do as part of a variable and as a file, with one spelling."""
    if not isinstance(name, str) or not _is_name(name):
        raise Invalid(field, "must be named by up to 64 small letters, digits and _, beginning with a letter")
    return name


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

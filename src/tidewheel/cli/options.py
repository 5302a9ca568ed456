"""Options that several commands share."""

from collections.abc import Sequence
from typing import Annotated, Any, get_args

import typer

from tidewheel.errors import Invalid
from tidewheel.model.cap import Overflow
from tidewheel.model.submission import LEAST_ARGS_BYTES, MOST_ARGS_BYTES
from tidewheel.settings import SETTINGS


def setting(name: str, *flags: str, **more: Any) -> Any:
    """Return the option of a setting, as the table of settings has it."""
    known = SETTINGS[name]
    return typer.Option(*(flags or [known.flag]), envvar=known.variable, help=known.help, **more)


def default(name: str) -> Any:
    """Return what a setting is if nobody says anything."""
    return SETTINGS[name].default


Database = Annotated[str, setting("database")]
MaxArgsBytes = Annotated[int, setting("max_args_bytes", min=LEAST_ARGS_BYTES, max=MOST_ARGS_BYTES)]
Blobs = Annotated[str | None, setting("blobs")]
SecretsFolder = Annotated[str | None, setting("secrets")]
IdempotencyKey = Annotated[
    str | None, typer.Option("--key", help="An idempotency key: the same key twice makes one job.")
]
OverflowName = Annotated[
    str, typer.Option("--overflow", help=f"What becomes of one too many: {', '.join(get_args(Overflow))}.")
]


def parse_labels(given: Sequence[str]) -> dict[str, str]:
    """Return the labels that texts such as `zone=a` stand for."""
    labels = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise Invalid("label", f"must be name=value, not {text[:40]!r}")
        labels[name] = value
    return labels

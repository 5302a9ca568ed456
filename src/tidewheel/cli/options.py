"""Options that several commands share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from tidewheel.errors import Invalid

Database = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="TIDE_DATABASE",
        help="Where the jobs live: sqlite:///file, postgresql://user@host/name, or the https:// address of a server "
        "(with its key in TIDE_KEY).",
    ),
]
Blobs = Annotated[
    str | None,
    typer.Option(
        envvar="TIDE_BLOBS",
        help="Where large results and artifacts live: file:///folder or s3://bucket/prefix. "
        "By default a folder beside the SQLite file, or in the current directory.",
    ),
]
SecretsFolder = Annotated[
    str | None,
    typer.Option(
        "--secrets",
        envvar="TIDE_SECRETS",
        help="A folder of secrets that jobs may name, as tenant/name. "
        "Those of the tenant default may also be in TIDE_SECRET_<NAME>.",
    ),
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

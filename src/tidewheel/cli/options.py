"""Options that several commands share."""

from typing import Annotated

import typer

Database = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="TIDE_DATABASE",
        help="Where the jobs live: sqlite:///file or postgresql://user@host/name.",
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

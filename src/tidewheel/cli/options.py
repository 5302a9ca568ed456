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

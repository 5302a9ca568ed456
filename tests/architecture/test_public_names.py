"""The public face is short, and importing it is cheap."""

import subprocess
import sys

import tidewheel

HEAVY = {"apsw", "asyncpg", "typer", "rich", "uvloop", "starlette", "granian", "httpx", "obstore"}


def test_importing_tidewheel_loads_no_driver_and_no_command_line() -> None:
    code = f"import sys, tidewheel; print(sorted({HEAVY!r} & set(sys.modules)))"

    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_the_public_names_are_few_and_exist() -> None:
    names = getattr(tidewheel, "__all__", [])

    assert len(names) <= 40
    assert [name for name in names if not hasattr(tidewheel, name)] == []

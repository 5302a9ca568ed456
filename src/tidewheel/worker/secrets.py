"""Where a worker finds the secrets that jobs name: in its own environment, or in a folder of files.

A secret belongs to a tenant, for whoever may submit jobs may have them do with a secret what they like. The environment
(`TIDE_SECRET_<NAME>`) is for the tenant `default`; the folder has one folder for each tenant, with a file for each
secret. What is in a file is read anew for every run, so that it may be replaced at any time.
"""

import asyncio
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tidewheel.logs.masks import LEAST
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.secret import VARIABLE, variable_of
from tidewheel.tasks.signals import Fatal

MAX_SECRET: Final = 64 * 1024


class Secrets:
    """Finds secrets by name; what it says when it does not names them and shows nothing of them."""

    def __init__(self, environment: Mapping[str, str], folder: Path | None = None) -> None:
        self._environment = {name: value for name, value in environment.items() if name.startswith(VARIABLE)}
        self._folder = folder

    @classmethod
    def taken_from(cls, environment: MutableMapping[str, str], folder: str | None) -> "Secrets":
        """Take the secrets out of the environment of this process, so that tasks do not stumble over them there."""
        secrets = cls(environment, None if folder is None else Path(folder))
        for name in secrets._environment:
            del environment[name]
        return secrets

    async def fetch(self, tenant: str, names: Iterable[str]) -> dict[str, str]:
        """Return the secrets of a tenant; raises Fatal for the first that is missing or cannot be kept secret."""
        return {name: _checked(name, await self._find(tenant, name)) for name in names}

    async def _find(self, tenant: str, name: str) -> str:
        if tenant == DEFAULT_TENANT and (value := self._environment.get(variable_of(name))) is not None:
            return value
        if self._folder is not None:
            # A tenant may be named like a path; quoted it is one step of one, and it never begins with a dot.
            value = await asyncio.to_thread(_read, self._folder / quote(tenant, safe="") / name, name)
            if value is not None:
                return value
        raise Fatal(f"there is no secret {name!r} for the tenant {tenant!r} at this worker")


def _read(path: Path, name: str) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SECRET + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Fatal(f"the secret {name!r} cannot be read: {error.strerror}") from None
    if len(data) > MAX_SECRET:
        raise Fatal(f"the secret {name!r} has more than {MAX_SECRET} bytes")
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise Fatal(f"the secret {name!r} is no text in UTF-8") from None


def _checked(name: str, value: str) -> str:
    if len(value) < LEAST:
        raise Fatal(f"the secret {name!r} has fewer than {LEAST} characters, and could not be kept out of logs")
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value):
        raise Fatal(f"the secret {name!r} is no text that could be handed over")
    return value

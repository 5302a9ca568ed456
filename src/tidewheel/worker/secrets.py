"""Where a worker finds the secrets that jobs name: in its own environment, in a folder of files, or in the store.

A secret belongs to a tenant, for whoever may submit jobs may have them do with a secret what they like. The environment
(`TIDE_SECRET_<NAME>`) is for the tenant `default`; the folder has one folder for each tenant, with a file for each
secret. What is in a file is read anew for every run, so that it may be replaced at any time. For what a worker does not
have itself it asks the store, which knows whose run it is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tidewheel.errors import Conflict, NotFound
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.secret import MAX_SECRET, VARIABLE, flaw_of_text, text_of, variable_of
from tidewheel.settings import SETTINGS
from tidewheel.tasks.signals import Fatal

_KEY_VARIABLE: Final = SETTINGS["secrets_key"].variable

AskStore = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]
"""Returns what a store has of some secrets, for a run."""


async def _none_stored(names: Sequence[str]) -> Mapping[str, str]:
    del names
    return {}


class Secrets:
    """Finds secrets by name; what it says when it does not names them and shows nothing of them."""

    def __init__(self, environment: Mapping[str, str], folder: Path | None = None) -> None:
        self._environment = {name: value for name, value in environment.items() if name.startswith(VARIABLE)}
        self._folder = folder

    @classmethod
    def taken_from(cls, environment: MutableMapping[str, str], folder: str | None) -> "Secrets":
        """Take the secrets out of the environment of this process, so that tasks do not stumble over them there.

        With them goes the key of the stored ones, which whoever opens the store has read before.
        """
        secrets = cls(environment, None if folder is None else Path(folder))
        for name in secrets._environment:
            del environment[name]
        for name in (_KEY_VARIABLE, f"{_KEY_VARIABLE}_FILE"):
            environment.pop(name, None)
        return secrets

    async def fetch(self, tenant: str, names: Iterable[str], stored: AskStore = _none_stored) -> dict[str, str]:
        """Return the secrets of a tenant; raises Fatal for the first that is missing or cannot be kept secret."""
        found = {name: await self._find(tenant, name) for name in names}
        missing = [name for name, text in found.items() if text is None]
        more = await _from_store(missing, stored) if missing else {}
        return {name: _checked(tenant, name, more.get(name) if text is None else text) for name, text in found.items()}

    async def _find(self, tenant: str, name: str) -> str | None:
        if tenant == DEFAULT_TENANT and (value := self._environment.get(variable_of(name))) is not None:
            return value
        if self._folder is not None:
            # A tenant may be named like a path; quoted it is one step of one, and it never begins with a dot.
            return await asyncio.to_thread(_read, self._folder / quote(tenant, safe="") / name, name)
        return None


async def _from_store(names: Sequence[str], stored: AskStore) -> Mapping[str, str]:
    try:
        return await stored(names)
    except (Conflict, NotFound) as error:
        raise Fatal(str(error)) from None


def _read(path: Path, name: str) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SECRET + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Fatal(f"the secret {name!r} cannot be read: {error.strerror}") from None
    try:
        return text_of(data)
    except ValueError as error:
        raise Fatal(f"the secret {name!r} {error}") from None


def _checked(tenant: str, name: str, text: str | None) -> str:
    if text is None:
        raise Fatal(f"there is no secret {name!r} for the tenant {tenant!r} at this worker, and none is stored")
    if flaw := flaw_of_text(text):
        raise Fatal(f"the secret {name!r} {flaw}")
    return text

"""The environment of a runner: for each function what it was at first, and what that function is told of its job."""

import os
from collections.abc import Mapping
from typing import Final


class Variables:
    """Most of what a function gets is there already, so only what differs is set."""

    def __init__(self) -> None:
        self._text: Final = os.environ
        self._bytes: Final = os.environb
        self._there: Final[dict[bytes, bytes]] = vars(self._bytes)["_data"]
        """The dictionary behind both. To look through either of them takes longer than the rest of a short run."""
        self._first: Final = dict(self._there)

    def make(self, told: Mapping[str, str]) -> None:
        """Have the first ones and these, and no others."""
        os.environ = self._text  # noqa: B003 - the function before may have put something else there
        wanted = {**self._first, **{name.encode(): os.fsencode(value) for name, value in told.items()}}
        for name in self._there.keys() - wanted.keys():
            del self._bytes[name]
        for name, value in wanted.items():
            if self._there.get(name) != value:
                self._bytes[name] = value

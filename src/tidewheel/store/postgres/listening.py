"""Listening for hints."""

from contextlib import AbstractAsyncContextManager

from tidewheel.store.bell import Bell
from tidewheel.store.postgres.parts import Part


class Listening(Part):
    """See `store.base.HintStore`."""

    def listen(self) -> AbstractAsyncContextManager[Bell]:
        return self._hints.listen()

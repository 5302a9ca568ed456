"""Secrets that must not be seen in lines."""

from collections.abc import Iterable
from typing import Final

from tidewheel.logs.clean import clean

MASK: Final = "***"
LEAST: Final = 4
"""Shorter ones are not masked: they would tear up all other text, and guessing them is easy anyway."""


class Masks:
    """The secrets of a run, in the forms in which they would show up; each line of one that has several is one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= LEAST}
        self._shown = sorted({form for line in lines for form in (line, clean(line))}, key=len, reverse=True)
        self.raw = tuple(line.encode(errors="replace") for line in lines)
        """As they look in output, for whoever cuts it."""
        self.longest = max(map(len, self.raw), default=0)

    def hide_in(self, lines: list[str]) -> list[str]:
        """Return lines without the secrets."""
        if not self._shown:
            return lines
        together = "\n".join(lines)  # one look at all is much faster than one at each
        return [self.hide(line) for line in lines] if any(secret in together for secret in self._shown) else lines

    def hide(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self._shown:  # the longest first: one may be part of another
            if secret in text:
                text = text.replace(secret, MASK)
        return text

"""Secrets that must not be seen in lines."""

import json
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, quote_plus

import msgspec

from tidewheel.model.harmless_text import clean
from tidewheel.model.secret import LEAST_SECRET

MASK: Final = "***"
CUT: Final = "…"


class Masks:
    """The secrets of a run, in the forms in which they would show up; each line of one that has several is one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        lines = {line for secret in secrets for line in secret.splitlines() if len(line) >= LEAST_SECRET}
        forms = {form for line in lines for form in _forms(line)}
        self._shown = sorted(forms | set(map(clean, forms)), key=len, reverse=True)
        self.raw = tuple(form.encode(errors="replace") for form in forms)
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

    def hide_in_cut(self, text: str) -> str:
        """Return a text that may have been cut, marked by `…`, without the secrets and without pieces of them there."""
        if not self._shown:
            return text
        hidden = self.hide(text)
        doubtful = 1 + len(self._shown[0])
        if hidden.startswith(CUT):
            hidden = CUT + hidden[doubtful:]
        return hidden[:-doubtful] + CUT if hidden.endswith(CUT) and len(hidden) > 1 else hidden

    def hide_in_json(self, text: str) -> str:
        """Return JSON text without the secrets in any text of it; numbers stay what they are."""
        if not self._shown:
            return text
        value = msgspec.json.decode(text)
        hidden = self._hide_in_value(value)
        return text if hidden == value else msgspec.json.encode(hidden).decode()

    def _hide_in_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {self.hide(name): self._hide_in_value(inner) for name, inner in value.items()}
        return [self._hide_in_value(inner) for inner in value] if isinstance(value, list) else value


def _forms(line: str) -> set[str]:
    """Return how a line of a secret is written: as it is, in JSON, in the `repr` of Python, and in a URL."""
    plain = line.encode(errors="replace").decode()  # halves of surrogate pairs are in no URL
    written = (json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1], repr(line)[1:-1])
    return {line, *written, quote(plain), quote(plain, safe=""), quote_plus(plain)}

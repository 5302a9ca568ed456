"""Text that is harmless wherever it is shown: in a terminal, a page, or another log."""

import re
from typing import Final

# Colours, movements of the cursor, titles of windows: what a terminal takes as an order and does not show.
_ORDERS: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-OQ-WYZ`-~]"
)
# Other control characters but for the tab, marks that turn the direction of writing, separators of lines, half pairs.
_ODD: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# The same but for the end of a line: for many lines at once.
_find_odd: Final = re.compile(_ODD.pattern.replace("\x0a-\x1f", "\x0b-\x1f")).search


# What plain ASCII text is made of. To delete it all and see what is left takes a quarter of what a pattern takes.
_PLAIN: Final = bytes((0x09, *range(0x20, 0x7F)))
_PLAIN_LINES: Final = _PLAIN + b"\n"


def is_odd_text(text: str) -> bool:
    """Tell whether lines must be cleaned."""
    if text.isascii():
        return bool(text.encode().translate(None, _PLAIN_LINES))
    return _find_odd(text) is not None


def is_odd(text: str) -> bool:
    """Tell whether what should be one line must be cleaned or cut."""
    if text.isascii():
        return bool(text.encode().translate(None, _PLAIN))
    return not text.isprintable() and _ODD.search(text) is not None


def clean(text: str) -> str:
    """Return one line without orders for terminals, and with all else that cannot be seen spelt out."""
    return _ODD.sub(_spelt, _ORDERS.sub("", text)) if is_odd(text) else text


def clean_lines(text: str) -> str:
    """Return the same of a text that may have several lines."""
    return "\n".join(map(clean, text.split("\n"))) if is_odd_text(text) else text


def _spelt(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"  # noqa: PLR2004 - as Python writes them

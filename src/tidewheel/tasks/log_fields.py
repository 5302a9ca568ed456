"""What a record of Python's logging says besides its text: the fields of `extra`."""

import logging
from typing import Any, Final

import msgspec

_BORN_WITH: Final = frozenset(vars(logging.makeLogRecord({})))
_KNOWN: Final = _BORN_WITH | {"message", "asctime"}
"""With what formatting adds to a record."""
USUAL_COUNT: Final = len(_BORN_WITH)
"""A record that has no more attributes before it is formatted has no fields of its own."""
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


def with_fields(record: logging.LogRecord, text: str) -> str:
    """Return the text of a record; one with fields of its own as a JSON object, by which it can be searched for.

    What follows the message, such as a traceback, stays in lines of its own.
    """
    fields = {name: value for name, value in vars(record).items() if name not in _KNOWN}
    if not fields:
        return text
    head = getattr(record, "message", text)
    if not text.startswith(head):
        head = text
    return _as_json(head, fields) + text[len(head) :]


def _as_json(message: str, fields: dict[str, Any]) -> str:
    try:
        return _encode({"msg": message, **fields}).decode()
    except Exception as error:  # noqa: BLE001 - values without end, or whose own code fails
        return f"{message} (its fields cannot be shown: {type(error).__name__})"

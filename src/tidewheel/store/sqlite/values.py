"""How the model's values are written in this store, and read back."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.model.ids import EPOCH
from tidewheel.store.records import Dialect

MICROSECOND: Final = timedelta(microseconds=1)

_encoder: Final = msgspec.json.Encoder(uuid_format="hex")
decode_keys: Final = msgspec.json.Decoder(tuple[str, ...]).decode
decode_ids: Final = msgspec.json.Decoder(tuple[UUID, ...]).decode


def micros(instant: datetime) -> int:
    """Return an instant as it is stored."""
    return (instant - EPOCH) // MICROSECOND


def span(duration: timedelta) -> int:
    """Return a duration as it is stored."""
    return duration // MICROSECOND


def instant(stored: int) -> datetime:
    """Return the instant that was stored."""
    return EPOCH + timedelta(0, 0, stored)


def timedelta_of(stored: int) -> timedelta:
    """Return the duration that was stored."""
    return timedelta(microseconds=stored)


def some(convert: Callable[[Any], Any], value: Any) -> Any:
    """Convert a value that may be missing."""
    return None if value is None else convert(value)


def json_text(value: Any) -> str:
    """Return a set of values as the one JSON text by which statements take it; ids become hexadecimal."""
    return _encoder.encode(value).decode()


def id_of(stored: bytes) -> UUID:
    """Return the id that was stored."""
    return UUID(bytes=stored)


DIALECT: Final = Dialect(uuid=id_of, instant=instant, keys=decode_keys, ids=decode_ids)

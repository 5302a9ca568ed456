"""The files that pages load: read once, and named by their content, so that a browser keeps them for ever."""

import gzip
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

MEDIA_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
PREFIX: Final = "/ui/static/"
_DIGEST: Final = 8


class Asset(NamedTuple):
    """A file that is served."""

    url: str
    content: bytes
    packed: bytes
    """The same, compressed."""
    media_type: str


def load_assets() -> Mapping[str, Asset]:
    """Return the files of the dashboard by their plain names."""
    folder = files("tidewheel.server.dashboard") / "static"
    found = {}
    for place in (folder, folder / "vendor"):
        for entry in place.iterdir():
            plain, _, ending = entry.name.rpartition(".")
            if ending in MEDIA_TYPES:
                found[entry.name] = _asset(plain, ending, entry.read_bytes())
    return MappingProxyType(found)


def _asset(plain: str, ending: str, content: bytes) -> Asset:
    digest = hashlib.blake2b(content, digest_size=_DIGEST).hexdigest()
    packed = gzip.compress(content, mtime=0)
    return Asset(f"{PREFIX}{plain}.{digest}.{ending}", content, packed, MEDIA_TYPES[ending])

"""From a URL to a place for objects; a driver is loaded only when it is needed."""

from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tidewheel.blobs.backend import Backend
from tidewheel.blobs.blobs import Blobs
from tidewheel.blobs.files import FileBackend
from tidewheel.blobs.memory import MemoryBackend
from tidewheel.errors import Invalid

_OPTIONS: Final = {"endpoint", "region"}


def open_blobs(url: str) -> Blobs:
    """Open the place that a URL names: `file:///folder`, `s3://bucket/prefix?endpoint=…&region=…`, or `memory://`."""
    return Blobs(_backend(url))


def _backend(url: str) -> Backend:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Invalid("blobs", f"is no URL: {error}") from error
    if "@" in parts.netloc:
        raise Invalid("blobs", "credentials do not belong in the URL; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    if parts.scheme == "file":
        return FileBackend(_folder(parts))
    if parts.scheme == "s3":
        return _s3(parts)
    if url == "memory://":
        return MemoryBackend()
    raise Invalid("blobs", f"must be file:///folder, s3://bucket/prefix or memory://, not {parts.scheme or url[:40]!r}")


def _folder(parts: SplitResult) -> Path:
    path = Path(unquote(parts.path))
    if parts.netloc or parts.query or parts.fragment or not path.is_absolute() or "\0" in str(path):
        raise Invalid("blobs", "a folder is named by its absolute path, with three slashes: file:///var/lib/tide/blobs")
    return path


def _s3(parts: SplitResult) -> Backend:
    try:
        from tidewheel.blobs.s3 import Bucket, S3Backend  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as error:
        raise Invalid("blobs", "S3 needs a driver: pip install 'tidewheel[s3]'") from error
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(options.keys() - _OPTIONS):
        raise Invalid("blobs", f"S3 takes the options endpoint and region, not {', '.join(unknown)}")
    if not parts.hostname or parts.port or parts.fragment:
        raise Invalid("blobs", "must name a bucket: s3://bucket/prefix")
    if (endpoint := options.get("endpoint")) is not None:
        _check_endpoint(endpoint)
    return S3Backend(Bucket(parts.hostname, unquote(parts.path).strip("/"), endpoint, options.get("region")))


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
    except ValueError as error:
        raise Invalid("blobs", f"its endpoint is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("blobs", "its endpoint must be an http or https URL")
    if "@" in parts.netloc:
        raise Invalid("blobs", "credentials do not belong in the URL of the endpoint")

"""Objects in an S3 bucket, or in anything that speaks like one."""

import asyncio
import configparser
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import obstore
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from tidewheel.blobs.backend import CHUNK, PIECE, Found
from tidewheel.errors import Invalid, NotFound, TideError, Unavailable

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

_MAX_PARTS: Final = 10_000
_AT_ONCE: Final = 3
"""How many parts of one object are under way; each is held in memory."""
_SHOWN: Final = 300
_OTHER_CREDENTIALS: Final = {"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE"}


class Bucket(NamedTuple):
    """Which bucket, and where; None leaves it to the environment."""

    name: str
    prefix: str
    endpoint: str | None
    region: str | None


class S3Backend:
    """A bucket, or the part of it below a prefix."""

    def __init__(self, bucket: Bucket, environment: Mapping[str, str] = os.environ) -> None:
        config: S3Config = shared_credentials(environment)
        if bucket.endpoint is not None:
            config["endpoint"] = bucket.endpoint
        if bucket.region is not None:
            config["region"] = bucket.region
        # A whole object may take hours; silence for half a minute is what means trouble.
        client: ClientConfig = {
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": timedelta(seconds=30),
            "timeout": timedelta(days=1),
        }
        if bucket.endpoint is not None and bucket.endpoint.startswith("http:"):
            client["allow_http"] = True
        retry: RetryConfig = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
        with _told_plainly(bucket.name):
            self._store = S3Store(
                bucket.name, prefix=bucket.prefix or None, config=config, client_options=client, retry_config=retry
            )
        self._bucket = bucket.name

    async def put(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        source = _Source(chunks)
        try:
            with _told_plainly(self._bucket):
                first = await source.next() or b""
                second = await source.next() if first else None
                if second is None:
                    await obstore.put_async(self._store, key, first, use_multipart=False)
                else:
                    await obstore.put_async(
                        self._store,
                        key,
                        source.rest(first, second),
                        chunk_size=max(CHUNK, -(-size // _MAX_PARTS)),
                        max_concurrency=_AT_ONCE,
                    )
        except TideError:
            # What goes wrong in the source comes back as something about the upload that was given up because of it.
            if source.error is not None:
                raise source.error from None
            raise

    async def get(self, key: str, take: Callable[[bytes], object]) -> None:
        with _told_plainly(self._bucket, key):
            stream = (await obstore.get_async(self._store, key)).stream(CHUNK)
        while True:
            with _told_plainly(self._bucket, key):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            await asyncio.to_thread(take, bytes(chunk))

    async def pieces(self, key: str) -> AsyncGenerator[bytes, None]:
        with _told_plainly(self._bucket, key):
            stream = (await obstore.get_async(self._store, key)).stream(PIECE)
        while True:
            with _told_plainly(self._bucket, key):
                piece = await anext(stream, None)
            if piece is None:
                return
            yield bytes(piece)

    async def size(self, key: str) -> int | None:
        try:
            with _told_plainly(self._bucket, key):
                return (await obstore.head_async(self._store, key))["size"]
        except NotFound:
            return None

    async def find(self, folder: str) -> list[Found]:
        with _told_plainly(self._bucket):
            return [
                Found(meta["path"], meta["size"]) async for metas in obstore.list(self._store, folder) for meta in metas
            ]

    async def steps(self, folder: str, after: str, limit: int) -> list[str]:
        # No key below the step `after` sorts behind this, and every key of the next step does.
        begin = f"{folder}/{after}0" if after else None
        names: dict[str, None] = {}
        with _told_plainly(self._bucket):
            async for metas in obstore.list(self._store, folder, offset=begin):
                for meta in metas:
                    names[meta["path"].removeprefix(f"{folder}/").partition("/")[0]] = None
                    if len(names) > limit:
                        return list(names)[:limit]
        return list(names)

    async def delete(self, key: str) -> None:
        with _told_plainly(self._bucket):
            try:
                await obstore.delete_async(self._store, key)
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise

    async def sign(self, method: Literal["GET", "PUT"], key: str, lifetime: timedelta) -> str:
        with _told_plainly(self._bucket):
            return await obstore.sign_async(self._store, method, key, lifetime)

    async def copy(self, source: str, target: str) -> None:
        with _told_plainly(self._bucket, source):
            await obstore.copy_async(self._store, source, target)


class _Source:
    """Reads chunks in a thread and keeps the error that this ended with."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.error: Exception | None = None

    async def next(self) -> bytes | None:
        try:
            return await asyncio.to_thread(next, self._chunks, None)
        except Exception as error:
            self.error = error
            raise

    async def rest(self, *read: bytes) -> AsyncIterator[bytes]:
        for chunk in read:
            yield chunk
        while (more := await self.next()) is not None:
            yield more


@contextmanager
def _told_plainly(bucket: str, key: str | None = None) -> Iterator[None]:
    """Turn what the driver says into errors of ours; `key` is what may be missing."""
    try:
        yield
    except FileNotFoundError as error:
        if key is None or "NoSuchBucket" in str(error):
            raise Unavailable(f"there is no bucket {bucket}: create it, or name another") from error
        raise NotFound("blob", key) from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise Unavailable(f"bucket {bucket} refuses our credentials: {_first_line(error)}") from error
    except (BaseError, OSError, ValueError) as error:
        raise Unavailable(f"bucket {bucket}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def shared_credentials(environment: Mapping[str, str]) -> "S3Config":
    """Return what the shared AWS files say, which the driver does not read; what the environment says comes first."""
    home = Path(environment.get("HOME", "/")) / ".aws"
    profile = environment.get("AWS_PROFILE", "default")
    files = configparser.RawConfigParser(default_section="\0", strict=False)
    try:
        files.read(environment.get("AWS_CONFIG_FILE", home / "config"))
        files.read(environment.get("AWS_SHARED_CREDENTIALS_FILE", home / "credentials"))
    except configparser.Error as error:
        raise Invalid("blobs", f"the AWS files cannot be read: {type(error).__name__}") from error  # no line: secrets
    said = {
        name: value for part in (f"profile {profile}", profile) if part in files for name, value in files[part].items()
    }
    config: S3Config = {}
    if "region" in said and not environment.keys() & {"AWS_REGION", "AWS_DEFAULT_REGION"}:
        config["region"] = said["region"]
    if environment.keys() & _OTHER_CREDENTIALS or not {"aws_access_key_id", "aws_secret_access_key"} <= said.keys():
        return config
    config["access_key_id"] = said["aws_access_key_id"]
    config["secret_access_key"] = said["aws_secret_access_key"]
    if "aws_session_token" in said:
        config["session_token"] = said["aws_session_token"]
    return config

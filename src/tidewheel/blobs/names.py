"""Keys and locations of objects, and which names are harmless."""

import re
from typing import Final, NamedTuple, NewType
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.outcome import LOCATION_SCHEME, result_key

Digest = NewType("Digest", str)
"""The SHA-256 of an artifact's content, in 64 lower-case hexadecimal digits."""

MAX_NAME_BYTES: Final = 600
MAX_STEP_BYTES: Final = 200
"""File systems allow 255 bytes for one step of a path, S3 allows 1024 for a whole key."""

_is_digest = re.compile("[0-9a-f]{64}").fullmatch
_ARTIFACT = re.compile("sha256/[0-9a-f]{2}/[0-9a-f]{62}").fullmatch
_is_job = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_is_upload = re.compile("[0-9]{12}-[0-9a-f]{32}").fullmatch
_OUTPUTS = re.compile(
    r"outputs/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/(0|[1-9][0-9]{0,18})/(?:result\.json|files/(.+))", re.DOTALL
).fullmatch
# Control characters, separators of lines, marks that turn the direction of writing, and halves of surrogate pairs.
_NOT_IN_NAME = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]").search


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a run left behind."""

    token: int
    name: str
    size: int
    location: str


class Left(NamedTuple):
    """What a run left behind: a file, or its result if it has no name."""

    job_id: UUID
    token: int
    name: str | None


def check_digest(value: object) -> Digest:
    """Return a digest, or raise Invalid."""
    if not isinstance(value, str) or not _is_digest(value):
        raise Invalid("digest", "must be a SHA-256 in 64 lower-case hexadecimal digits")
    return Digest(value)


def check_output_name(name: str) -> str:
    """Return the name of an output file: a relative path that stays below where it is put, on any kind of store."""
    if not name or name.startswith("/"):
        raise Invalid("output name", "must be a relative path" if name else "must not be empty")
    if found := _NOT_IN_NAME(name):
        raise Invalid("output name", f"must not contain the control character U+{ord(found[0]):04X}")
    if "\\" in name:
        raise Invalid("output name", "must not contain a backslash")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise Invalid("output name", f"must have at most {MAX_NAME_BYTES} bytes, not {len(name.encode())}")
    for step in name.split("/"):
        if step in ("", ".", ".."):
            raise Invalid("output name", f"must not have {step!r} as a part of its path")
        if len(step.encode()) > MAX_STEP_BYTES:
            raise Invalid("output name", f"each part of its path must have at most {MAX_STEP_BYTES} bytes")
    return name


def artifact_key(digest: Digest) -> str:
    """Return the key of an artifact."""
    return f"sha256/{digest[:2]}/{digest[2:]}"


def upload_key(name: str) -> str:
    """Return the key under which something arrives whose content is not known yet; see `upload_name`."""
    if not _is_upload(name):
        raise Invalid("upload", "is none of ours")
    return f"uploads/{name}"


def upload_name(until: int, unique: str) -> str:
    """Return the name of an upload that is over at that second since 1970; it sorts by that time."""
    return f"{until:012d}-{unique}"


def upload_is_over(key: str, now: float) -> bool:
    """Tell whether the time of an upload has passed."""
    name = key.rpartition("/")[2]
    return not _is_upload(name) or int(name[:12]) < now


def output_key(job_id: UUID, token: int, name: str) -> str:
    """Return the key of a file that a run left behind."""
    return f"outputs/{job_id}/{token}/files/{check_output_name(name)}"


def left_key(job_id: UUID, token: int, name: str | None) -> str:
    """Return the key of what a run left behind: a file, or its result if there is no name."""
    return result_key(job_id, token) if name is None else output_key(job_id, token, name)


def left_of(key: str) -> Left | None:
    """Return what a run left behind under a key; None if the key names something else."""
    found = _OUTPUTS(key)
    return None if found is None else Left(UUID(found[1]), int(found[2]), found[3])


def job_of(step: str) -> UUID | None:
    """Return the job that a folder of outputs is of; None if it is no such folder."""
    return UUID(step) if _is_job(step) else None


def digest_of(key: str) -> Digest | None:
    """Return the digest of the artifact under a key; None if the key names something else."""
    return Digest(key.removeprefix("sha256/").replace("/", "")) if _ARTIFACT(key) else None


def artifact_location(digest: str) -> str:
    """Return the location of an artifact."""
    return location_of(artifact_key(check_digest(digest)))


def output_location(job_id: UUID, token: int, name: str) -> str:
    """Return the location of a file that a run left behind."""
    return location_of(output_key(job_id, token, name))


def location_of(key: str) -> str:
    """Return what is stored in place of an object's content."""
    return LOCATION_SCHEME + key


def key_of(location: str) -> str:
    """Return the key that a location names; one that we cannot have made is Invalid."""
    key = location.removeprefix(LOCATION_SCHEME)
    outputs = _OUTPUTS(key)
    if key == location or not (outputs or _ARTIFACT(key)):
        raise Invalid("location", f"is none of ours: {location[:200]!r}")
    if outputs and outputs[3] is not None:
        check_output_name(outputs[3])
    return key


def output_of(key: str, size: int) -> Output | None:
    """Return the file that a key names; None if it names something else."""
    found = _OUTPUTS(key)
    if not found or found[3] is None:
        return None
    return Output(token=int(found[2]), name=found[3], size=size, location=location_of(key))

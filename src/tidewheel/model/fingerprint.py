"""The fingerprint of an error: the same for failures that have one cause, whatever ids and numbers are in their texts.

It is made of the reason, the type of the exception, the message without what differs from job to job, and the innermost
place in the task's own code. Line numbers and folders are left out, so that it outlives a release.
"""

import hashlib
import re
from pathlib import PurePath
from typing import Final

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown
from tidewheel.model.outcome import Failure

LENGTH: Final = 16
_MOST: Final = 500
_MOST_STORY: Final = 16 * 1024
_NAMELESS: Final = Failure(reason="unknown")

_VARIES: Final = (
    (re.compile(r"(?<!\w)(\"[^\"]*\"|'[^']*'|`[^`]*`)(?!\w)"), "'…'"),
    (re.compile(r"\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{6,}\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"[+-]?\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)
"""What differs from job to job, and what stands for it; the order matters."""
_frames: Final = re.compile(r'^\s*File "([^"]+)", line \d+, in (.+)$', re.MULTILINE).findall
_type: Final = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE).findall
_foreign: Final = re.compile(r"site-packages|dist-packages|/lib/python\d|^<|/tidewheel/(worker|tasks|sdk)/").search
_is_fingerprint: Final = re.compile(rf"[0-9a-f]{{{LENGTH}}}").fullmatch


def fingerprint_of(error: Failure | None) -> str:
    """Return the fingerprint of an error, sixteen hexadecimal digits."""
    error = error or _NAMELESS
    story = (error.detail or "")[-_MOST_STORY:]
    frames = _frames(story)
    told = (error.reason, str(error.exit_code), normal_form(error.message), *_type_and_place(story, frames))
    return hashlib.sha256("\n".join(told).encode(errors="replace")).hexdigest()[:LENGTH]


def normal_form(message: str) -> str:
    """Return the first line of a message with quoted texts, ids, hexadecimal and other numbers replaced."""
    text = message.strip().partition("\n")[0][: 4 * _MOST]
    for varies, stands_for in _VARIES:
        text = varies.sub(stands_for, text)
    return text.strip()[:_MOST]


def check_fingerprint(field: str, value: object) -> str:
    """Return a fingerprint that may be one."""
    if not isinstance(value, str) or not _is_fingerprint(value):
        raise Invalid(field, f"must be {LENGTH} hexadecimal digits, not {shown(value)}")
    return value


def _type_and_place(story: str, frames: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the type of the exception, and file and function of the innermost frame that is not a library's."""
    if not frames:
        return "", ""
    types = _type(story[-4 * _MOST :])
    file, function = next((frame for frame in reversed(frames) if not _foreign(frame[0])), frames[-1])
    return str(types[-1]) if types else "", f"{PurePath(file).name}:{function}"

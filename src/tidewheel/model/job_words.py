"""Words by which people look for jobs."""

import re
from typing import Final, NamedTuple
from uuid import UUID

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_text

MAX_TEXT: Final = 400
MAX_WORDS: Final = 20
_WORD: Final = re.compile(r'"([^"]+)"|(\S+)')
_CAPITALS: Final = re.compile("[A-Z]+")
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


class JobWords(NamedTuple):
    """What someone looks for: one job by its id, or all that words have in common."""

    job_id: UUID | None
    words: tuple[str, ...]
    """In small letters: those from A to Z are the same as capitals, for every store alike."""


def read_words(text: str, field: str = "text") -> JobWords:
    """Return what a text looks for: words, phrases in quotation marks, or an id. Raises Invalid."""
    asked = check_text(field, text.strip(), MAX_TEXT)
    if not asked:
        raise Invalid(field, "must have a word at least")
    if _ID(asked):
        return JobWords(UUID(asked), ())
    small = _CAPITALS.sub(lambda found: found[0].lower(), asked)
    words = tuple(dict.fromkeys(phrase or word for phrase, word in _WORD.findall(small)))
    if len(words) > MAX_WORDS:
        raise Invalid(field, f"must have at most {MAX_WORDS} words, not {len(words)}")
    return JobWords(None, words)

"""Searching in lines: what may be asked, and which lines it means.

A query is words, all of which a line must have, in any order and case. `"two words"` must follow one another, `tim*` is
the beginning of a word, `-word` must not be there, and `user:42` is a field of a line that is a JSON object, or just
that text.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_instant, check_name
from tidewheel.model.log import LogLine, LogStream
from tidewheel.model.log_words import MAX_WORD, fields_of, level_of, levels_from, pair_token, said, token_of, words_in

MAX_QUERY: Final = 500
MAX_TERMS: Final = 20
MAX_EXCERPT: Final = 240
_BEFORE: Final = 60
_MOST_MARKS: Final = 20
_TERMS: Final = re.compile(r'\s*(-?)(?:"([^"]*)"|(?P<name>[A-Za-z_][\w.-]*):(?!/)("[^"]*"|[^\s"]+)|(\S+))')

_PLAIN: Final = re.compile(r"[a-z0-9]+")
_FRACTION: Final = re.compile(r"[-\d.e]*[.e][-\d.e]*")
_ESCAPE: Final = r"\u"
"""How JSON may write any letter in another way."""

Sight = str
"""What could be seen at one moment, as the store wrote it down that was looked at; nobody else reads it."""

Token = tuple[str, bool]
"""What stands in an index, and whether only its beginning is given."""


class LogFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines to find; all conditions must hold."""

    text: str = ""
    tenant: str | None = None
    kind: str | None = None
    queue: str | None = None
    job_id: UUID | None = None
    level: str | None = None
    """This level, or one of more weight."""
    stream: LogStream | None = None
    since: datetime | None = None
    before: datetime | None = None
    """When they were stored."""


class LogKey(NamedTuple):
    """The place of a line among all lines, in the order in which they were stored."""

    stored_at: datetime
    job_id: UUID
    token: int
    number: int


class FoundLine(msgspec.Struct, frozen=True):
    """A line with what one must know of its job."""

    line: LogLine
    stored_at: datetime
    tenant: str
    queue: str
    kind: str

    @property
    def key(self) -> LogKey:
        return LogKey(self.stored_at, self.line.job_id, self.line.token, self.line.number)


class LogPage(msgspec.Struct, frozen=True):
    """Lines that were found. A page may be short, even empty, while `next` leads on."""

    lines: list[FoundLine]
    next: LogKey | None = None
    """Where the next page begins (exclusive); None at the end."""
    sight: Sight = ""
    """What could be seen when it was read."""


class LogBacklog(NamedTuple):
    """What is not in the index yet."""

    lines: int
    waits: timedelta
    """For how long the first of it waits."""


class Excerpt(NamedTuple):
    """A part of a line around what was found in it."""

    text: str
    marks: list[tuple[int, int]]
    """Where in the text that is: from, and up to before."""


class _Field(NamedTuple):
    """A name with a value, as in `user:42`; both in lower case."""

    name: str
    value: str
    text: re.Pattern[str] | None
    """How it may stand in a line, unless it may not."""

    @property
    def tokens(self) -> list[Token]:
        """What an index has if a line has it, as a field or as text."""
        pair = pair_token(self.name, self.value)
        found = {token_of(f"{self.name}:{self.value}"), *([] if pair is None else [pair])}
        return [(token, False) for token in sorted(found)]

    @property
    def needle(self) -> str:
        """What a line must have, in lower case, to have it; nothing if that is not certain.

        A fraction may be written in many ways.
        """
        runs = _PLAIN.findall(self.name if _FRACTION.fullmatch(self.value) else self.value)
        return max(runs, key=len, default="")

    def is_in(self, lower: str, fields: Mapping[str, Any]) -> bool:
        for name, value in fields.items():
            if name.lower() == self.name and said(value).lower() == self.value:
                return True
        return self.text is not None and ":" in lower and self.text.search(lower) is not None


class _Term(NamedTuple):
    words: tuple[str, ...]
    """More than one must follow one another; none for a field."""
    field: _Field | None = None
    prefix: bool = False
    negative: bool = False

    def is_in(self, words: Sequence[str], lower: str, fields: Mapping[str, Any]) -> bool:
        if self.field is not None:
            return self.field.is_in(lower, fields)
        if self.prefix:
            return any(word.startswith(self.words[0]) for word in words)
        if len(self.words) == 1:
            return self.words[0] in words
        length = len(self.words)
        return any(tuple(words[n : n + length]) == self.words for n in range(len(words) - length + 1))


class LogSearch:
    """A filter made ready: what an index is asked, and whether a line is meant."""

    def __init__(self, where: LogFilter) -> None:
        self.where = where
        self._terms = _parse(where.text)
        self._levels = None if where.level is None else frozenset(levels_from(_check_level(where.level)))
        for field, name in (("kind", where.kind), ("queue", where.queue)):
            if name is not None:
                check_name(field, name)
        self.since = None if where.since is None else check_instant("since", where.since)
        self.before = None if where.before is None else check_instant("before", where.before)
        positive = [term for term in self._terms if not term.negative]
        self._needles = sorted({word for term in positive for word in term.words}, key=len, reverse=True)
        self._field_needles = [term.field.needle for term in positive if term.field and term.field.needle]
        self._reads_words = any(term.words for term in self._terms)
        self._reads_fields = self._levels is not None or any(term.field for term in self._terms)
        self._marks = _marks_of(positive)

    @property
    def tokens(self) -> list[list[Token]]:
        """What an index is asked: of each of these one must be there."""
        asked: list[list[Token]] = []
        for term in self._terms:
            if not term.negative:
                asked += [term.field.tokens] if term.field else [[(w[:MAX_WORD], term.prefix)] for w in term.words]
        where = self.where
        named = {"tenant": where.tenant, "kind": where.kind, "queue": where.queue, "stream": where.stream}
        asked += [[(token_of(f"{name}={value}"), False)] for name, value in named.items() if value is not None]
        if where.job_id is not None:
            asked.append([(f"job={where.job_id.hex}", False)])
        if self._levels is not None:
            asked.append([(token_of(f"level={level}"), False) for level in sorted(self._levels)])
        return asked

    def may_be_in(self, lines: str) -> bool:
        """Tell by a quick look at a line, or a whole piece, whether it is worth a closer one."""
        lower = lines.lower()
        for needle in self._needles:
            if needle not in lower:
                return False
        if self._field_needles and _ESCAPE not in lower:
            for needle in self._field_needles:
                if needle not in lower:
                    return False
        return True

    def is_about(self, job_id: UUID, tenant: str, queue: str, kind: str) -> bool:
        """Tell whether lines of a job are meant at all."""
        where = self.where
        return (
            (where.tenant is None or where.tenant == tenant)
            and (where.queue is None or where.queue == queue)
            and (where.kind is None or where.kind == kind)
            and (where.job_id is None or where.job_id == job_id)
        )

    def means(self, stream: str, level: str | None, text: str) -> bool:
        """Tell whether a line, which is of the right job, is meant."""
        if (self.where.stream is not None and stream != self.where.stream) or not self.may_be_in(text):
            return False
        fields = fields_of(text) if self._reads_fields else {}
        if self._levels is not None and level_of(level, fields) not in self._levels:
            return False
        if not self._terms:
            return True
        lower = text.lower()
        words = words_in(lower) if self._reads_words else []
        return all(term.is_in(words, lower, fields) is not term.negative for term in self._terms)

    def excerpt(self, text: str) -> Excerpt:
        """Return the part of a line around the first thing that was found in it, and where in that everything is."""
        found = [] if self._marks is None else [match.span() for match in self._marks.finditer(text)]
        start = max(0, found[0][0] - _BEFORE) if found and found[0][1] > MAX_EXCERPT else 0
        end = min(len(text), start + MAX_EXCERPT)
        head, tail = "…" if start else "", "…" if end < len(text) else ""
        shift = start - len(head)
        marks = [(first - shift, last - shift) for first, last in found if start <= first and last <= end]
        return Excerpt(head + text[start:end] + tail, marks[:_MOST_MARKS])


def _parse(text: str) -> list[_Term]:
    if len(text) > MAX_QUERY:
        raise Invalid("q", f"must have at most {MAX_QUERY} characters, not {len(text)}")
    if text.count('"') % 2:
        raise Invalid("q", "has a quotation mark that is not closed")
    terms = [_term(*match.groups()) for match in _TERMS.finditer(text.strip())]
    if len(terms) > MAX_TERMS:
        raise Invalid("q", f"must have at most {MAX_TERMS} words and phrases, not {len(terms)}")
    return terms


def _term(minus: str, phrase: str | None, name: str | None, value: str | None, word: str | None) -> _Term:
    negative = bool(minus)
    if name is not None and value is not None:
        return _Term((), _field(name.lower(), value.strip(chr(34)).lower()), negative=negative)
    typed = phrase if word is None else word
    words = tuple(words_in((typed or "").lower()))
    if not words:
        raise Invalid("q", f"has no word to look for in {(typed or minus)[:40]!r}")
    prefix = word is not None and word.endswith("*")
    if word is not None and ("*" in word[:-1] or (prefix and len(words) > 1)):
        raise Invalid("q", f"may have * only at the end of a plain word, not as in {word[:40]!r}")
    return _Term(words, prefix=prefix, negative=negative)


def _field(name: str, value: str) -> _Field:
    if pair_token(name, value) is None:
        return _Field(name, value, None)
    return _Field(name, value, re.compile(rf"(?<![\w.-]){re.escape(name)}:{re.escape(value)}(?!\w)"))


def _check_level(level: str) -> str:
    if not level or len(level) > MAX_WORD or words_in(level.lower()) != [level.lower()]:
        raise Invalid("level", f"must be a word such as warning, not {level[:40]!r}")
    return level


def _marks_of(terms: Sequence[_Term]) -> re.Pattern[str] | None:
    shown = []
    for term in terms:
        if term.field is not None:
            shown += _mark_of(term.field)
        else:
            shown.append(r"\b" + r"\W+".join(map(re.escape, term.words)) + (r"\w*" if term.prefix else r"\b"))
    return re.compile("|".join(shown), re.IGNORECASE) if shown else None


def _mark_of(field: _Field) -> list[str]:
    """Return how a line may have a value: as it was typed, with the name before it in a text, or as JSON writes it."""
    if not field.value:
        return []
    name, written = re.escape(field.name), msgspec.json.encode(field.value).decode()[1:-1]
    values = "|".join(map(re.escape, sorted({field.value, written}, key=len, reverse=True)))
    return [rf"(?:(?<![\w.-]){name}:)?(?<!\w)(?:{values})(?!\w)"]

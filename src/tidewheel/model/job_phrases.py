"""Phrases by which jobs are found: kinds, labels (`name=value`), names, descriptions, and the messages of their errors.

An index knows each phrase and the *moments*, of about a second, in which jobs with it were made; the id of a job tells
its moment. So a phrase that thousands of jobs of one second have is noted once. The index tells where to look, and not
what is found: a moment too many costs time, and nothing else.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

_TIME_BITS: Final = 80
"""Of an id, below its milliseconds."""
_MOMENT_BITS: Final = 10
_BELOW_MOMENT: Final = _TIME_BITS + _MOMENT_BITS
_PERIOD_BITS: Final = 16
"""A period is 65 536 moments, about 19 hours. Phrases are noted, and forgotten, for each period by itself."""
_YOUNG: Final = 3
LEAST_PART: Final = 3
"""Characters of the parts by which phrases are found."""
MOST_NOTED: Final = 500
"""Characters of a job's texts, and of the message of its error, that are noted: most of them cost an entry in the index
of parts each, and who submits or ends a job waits for that."""
LONG: Final = "\x01"
"""The phrase that stands for all texts for which there is no room: any word may stand in them."""
_MOST_REMEMBERED: Final = 500
MOST_MOMENTS: Final = 5_000
"""How many moments are read for one word, about."""
MOST_PHRASES: Final = 2_000
"""A word that stands in more phrases than this is not rare, and is not looked up."""
MOST_STRETCHES: Final = 50
"""How many stretches of jobs one page looks through, besides what it looks through in any case."""
_NEAR: Final = 3
"""Moments with no more than this between any two are looked through at once."""
_CAPITALS: Final = re.compile("[A-Z]+")
_labels: Final = msgspec.json.Decoder(dict[str, str]).decode


class Said(NamedTuple):
    """That a tenant has a job with a phrase."""

    tenant: int
    phrase: str
    moment: int


class Stretch(NamedTuple):
    """Jobs whose ids lie below one, down to another."""

    below: UUID
    floor: UUID


class Trail(NamedTuple):
    """Where jobs with a word, a label or of a kind were made."""

    moments: frozenset[int]
    reach: int
    """All moments from this one on are there; those before it may be missing."""


class _Names(msgspec.Struct):
    name: str | None = None
    description: str | None = None


_names: Final = msgspec.json.Decoder(_Names).decode


def small(text: str) -> str:
    """Return a text in small letters: those from A to Z, as every store does it alike."""
    return _CAPITALS.sub(lambda found: found[0].lower(), text)


def label_phrase(name: str, value: str) -> str:
    """Return the phrase of a label."""
    return small(f"{name}={value}")


@lru_cache(4096)
def kind_phrase(kind: str) -> str:
    """Return the phrase of a kind."""
    return small(kind)


def phrases_of(labels: str | None, options: str | None) -> tuple[str, ...]:
    """Return what a job is found by from the beginning, besides its kind; both are JSON, as they are stored."""
    is_short = len(labels or "") + len(options or "") <= _MOST_REMEMBERED
    return _short_phrases_of(labels, options) if is_short else _phrases_of(labels, options)


def _phrases_of(labels: str | None, options: str | None) -> tuple[str, ...]:
    texts = [label_phrase(name, value) for name, value in _labels(labels).items()] if labels else []
    if options:
        names = _names(options)
        texts += [small(text) for text in (names.name, names.description) if text]
    return _noted(texts)


_short_phrases_of = lru_cache(4096)(_phrases_of)


def _noted(texts: Iterable[str]) -> tuple[str, ...]:
    """Return phrases for the texts of one job, as far as there is room."""
    room, phrases = MOST_NOTED, dict[str, None]()
    for text in texts:
        fits = len(text) <= room
        room -= len(text) if fits else 0
        phrases[text if fits else LONG] = None
    return tuple(phrases)


def said_by(jobs: Iterable[tuple[int, UUID, str | None, str | None]]) -> list[Said]:
    """Return what jobs are found by from the beginning, besides their kinds.

    Each is given by its tenant, id, labels and options.
    """
    return list(
        dict.fromkeys(
            Said(tenant, phrase, moment_of(job_id))
            for tenant, job_id, labels, options in jobs
            for phrase in phrases_of(labels, options)
        )
    )


def said_of_kinds(jobs: Iterable[tuple[int, UUID, str]]) -> list[Said]:
    """Return that jobs are found by their kinds, each given by its tenant, id and kind."""
    # Every submit comes this way: of a thousand jobs alike, one is looked at more closely.
    made = dict.fromkeys((tenant, kind, job_id.int >> _BELOW_MOMENT) for tenant, job_id, kind in jobs)
    return [Said(tenant, kind_phrase(kind), moment) for tenant, kind, moment in made]


def said_of_ends(ends: Iterable[tuple[int, UUID, str | None]]) -> list[Said]:
    """Return what jobs are found by that ended without success, each given by its tenant, id and message."""
    return list(
        dict.fromkeys(
            Said(tenant, phrase, moment_of(job_id))
            for tenant, job_id, message in ends
            if message
            for phrase in _noted([small(message)])
        )
    )


def said_by_one_alone(
    job_id: UUID, moment: Iterable[tuple[UUID, int, str | None, str | None, str | None]]
) -> list[Said]:
    """Return what one job is found by and none of the others of its moment.

    Each is given by its id, tenant, labels, options and the message of its error.
    """
    own, others = set[Said](), set[Said]()
    for one, tenant, labels, options, message in moment:
        said = (*said_by([(tenant, one, labels, options)]), *said_of_ends([(tenant, one, message)]))
        (own if one == job_id else others).update(said)
    return sorted(own - others)


def moment_of(job_id: UUID) -> int:
    """Return the moment in which an id was made."""
    return job_id.int >> _BELOW_MOMENT


def period_of(moment: int) -> int:
    """Return the period of a moment."""
    return moment >> _PERIOD_BITS


def oldest_young_period(now: float) -> int:
    """Return the first period that is never forgotten: someone may be about to note a job that was made in it."""
    return period_of(int(now * 1000) >> _MOMENT_BITS) - _YOUNG


def bounds_of_moment(moment: int) -> Stretch:
    """Return the ids of a moment."""
    return _stretch(moment, moment)


def bounds_of_period(period: int) -> Stretch:
    """Return the ids of a period."""
    return _stretch(period << _PERIOD_BITS, ((period + 1) << _PERIOD_BITS) - 1)


def parts_of(word: str) -> list[str]:
    """Return the parts of a word, all of which are parts of every phrase in which it stands."""
    return list(dict.fromkeys(word[at : at + LEAST_PART] for at in range(len(word) - LEAST_PART + 1)))


def moments_each(phrases: int) -> int:
    """Return how many moments are read of each of so many phrases."""
    return max(2, MOST_MOMENTS // max(1, phrases))


def trail_of(moments: Iterable[Sequence[int]], most: int, floor: int) -> Trail:
    """Put the moments of phrases together: the newest `most` of each, newest first, down to `floor`."""
    reach, seen = floor, set[int]()
    for some in moments:
        seen.update(some)
        if len(some) >= most:
            reach = max(reach, some[-1])
    return Trail(frozenset(moment for moment in seen if moment >= reach), reach)


def stretches_on(trails: Sequence[Trail], floor: int) -> tuple[list[Stretch], UUID | None]:
    """Return where jobs may lie that are on all trails, newest first, and below which id nothing is known."""
    best = min(trails, key=lambda trail: (trail.reach, len(trail.moments)))
    common = [moment for moment in best.moments if all(_may_be_on(trail, moment) for trail in trails)]
    joined: list[list[int]] = []
    for moment in sorted(common, reverse=True):
        if joined and joined[-1][0] - moment <= _NEAR + 1:
            joined[-1][0] = moment
        else:
            joined.append([moment, moment])
    stretches = [_stretch(first, last) for first, last in joined[:MOST_STRETCHES]]
    if len(joined) > MOST_STRETCHES:
        return stretches, stretches[-1].floor
    return stretches, _first_id(best.reach) if best.reach > floor else None


def _may_be_on(trail: Trail, moment: int) -> bool:
    return moment < trail.reach or moment in trail.moments


def _stretch(first: int, last: int) -> Stretch:
    return Stretch(_first_id(last + 1), _first_id(first))


def _first_id(moment: int) -> UUID:
    """Return the lowest id of a moment."""
    return UUID(int=min(moment << _BELOW_MOMENT, 2**128 - 1))

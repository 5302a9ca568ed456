"""Durations counted in fixed buckets, so that counts of different times and places can simply be added.

Bucket 0 is up to a millisecond, and each further one reaches to √2 times the last. Longer than twelve days is the last.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

import msgspec

LEAST: Final = 0.001
"""Seconds that the first bucket reaches to."""
A_DOUBLING: Final = 2
"""How many buckets there are from one duration to its double."""
LAST: Final = 60

Histogram = Mapping[int, int]
"""How many durations there were in each bucket; those with none are left out."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[int, int]).decode


def bucket_of(seconds: float) -> int:
    """Return the bucket of a duration; one below zero, by clocks that differ, is none at all."""
    if seconds <= LEAST:
        return 0
    return min(LAST, math.ceil(A_DOUBLING * math.log2(seconds / LEAST) - 1e-9))


def upper_bound(bucket: int) -> float:
    """Return up to how many seconds a bucket reaches, these included."""
    return float(LEAST * 2 ** (bucket / A_DOUBLING))


def count(durations: Iterable[timedelta]) -> Counter[int]:
    """Count durations."""
    return Counter(bucket_of(duration.total_seconds()) for duration in durations)


def quantile(histogram: Histogram, share: float) -> float | None:
    """Return how many seconds at most so large a share of the durations took, by the upper bound of its bucket."""
    total = sum(histogram.values())
    if not total:
        return None
    rank = max(1, math.ceil(share * total))
    seen = 0
    for bucket in sorted(histogram):
        seen += histogram[bucket]
        if seen >= rank:
            return upper_bound(bucket)
    raise AssertionError("unreachable")


def to_text(histogram: Histogram) -> str:
    """Return a histogram as it is stored."""
    return _encode({bucket: histogram[bucket] for bucket in sorted(histogram)}).decode()


def from_text(text: str) -> Counter[int]:
    """Return a histogram that was stored."""
    return Counter(_decode(text))

"""Counters, histograms and gauges, and the page that shows them (Prometheus text format 0.0.4)."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds for how long something takes."""
MOST_SERIES: Final = 2000
"""Of one metric; labels are names that someone gave, and whoever makes up many must not fill the memory."""

Labels = tuple[str, ...]


class Sample(NamedTuple):
    """A number with its labels."""

    labels: Mapping[str, str]
    value: float


class Metric(Protocol):
    """Something with a name and lines."""

    def lines(self) -> Iterator[str]:
        """Return its lines, first what it is."""
        ...


class Counter:
    """Counts what happens, for each combination of labels."""

    def __init__(self, name: str, help_text: str, labels: Sequence[str] = ()) -> None:
        self._head = _head(name, help_text, "counter")
        self._name = name
        self._labels = tuple(labels)
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, value: float = 1.0) -> None:
        """Count something; labels come in the order in which they were named."""
        if labels in self._values or len(self._values) < MOST_SERIES:
            self._values[labels] = self._values.get(labels, 0.0) + value

    def lines(self) -> Iterator[str]:
        """Return its lines."""
        yield from self._head
        for labels, value in sorted(self._values.items()):
            yield _line(self._name, dict(zip(self._labels, labels, strict=True)), value)


class Histogram:
    """Counts how long things take, by bounds."""

    def __init__(
        self, name: str, help_text: str, labels: Sequence[str] = (), bounds: Sequence[float] = SECONDS
    ) -> None:
        self._head = _head(name, help_text, "histogram")
        self._name = name
        self._labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count one."""
        counts = self._counts.get(labels)
        if counts is None:
            if len(self._counts) >= MOST_SERIES:
                return
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def lines(self) -> Iterator[str]:
        """Return its lines; each bucket counts all that is not above its bound."""
        yield from self._head
        for labels, counts in sorted(self._counts.items()):
            named = dict(zip(self._labels, labels, strict=True))
            below = 0
            for bound, count in zip((*self._bounds, None), counts, strict=True):
                below += count
                yield _line(f"{self._name}_bucket", {**named, "le": "+Inf" if bound is None else f"{bound:g}"}, below)
            yield _line(f"{self._name}_sum", named, self._sums[labels])
            yield _line(f"{self._name}_count", named, below)


class Registry:
    """The metrics of a process."""

    def __init__(self) -> None:
        self._metrics: list[Metric] = []

    def counter(self, name: str, help_text: str, *labels: str) -> Counter:
        """Add a counter."""
        self._metrics.append(metric := Counter(name, help_text, labels))
        return metric

    def histogram(self, name: str, help_text: str, *labels: str) -> Histogram:
        """Add a histogram of seconds."""
        self._metrics.append(metric := Histogram(name, help_text, labels))
        return metric

    def page(self, *more: Iterable[str]) -> bytes:
        """Return the page: all metrics of the process, and lines of gauges besides."""
        lines = [line for metric in self._metrics for line in metric.lines()]
        lines += [line for group in more for line in group]
        return ("\n".join(lines) + "\n").encode()


def gauge(name: str, help_text: str, samples: Iterable[Sample]) -> list[str]:
    """Return the lines of something that goes up and down, as it is now."""
    return [*_head(name, help_text, "gauge"), *(_line(name, sample.labels, sample.value) for sample in samples)]


def _head(name: str, help_text: str, kind: str) -> tuple[str, str]:
    plain = help_text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {plain}", f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    number = f"{value:.0f}" if float(value).is_integer() else repr(float(value))
    return f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

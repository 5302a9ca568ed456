"""Counters, histograms and gauges, and the page that shows them (Prometheus text format 0.0.4)."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple, Protocol

import msgspec

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds for how long something of ours takes."""
MOST_SERIES: Final = 2000
"""Of one metric; labels are names that someone gave, and whoever makes up many must not fill the memory."""

Labels = tuple[str, ...]


class Described(msgspec.Struct, frozen=True):
    """What a metric is."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: Labels = ()
    bounds: tuple[float, ...] = SECONDS
    """Of a histogram."""


class Row(NamedTuple):
    """The values of labels, and a number; of a histogram the counts between its bounds and then the sum."""

    labels: Labels
    values: list[float]


class Numbers(msgspec.Struct, frozen=True):
    """A metric as one process, or several together, counted it."""

    metric: Described
    rows: list[Row]


class Counter:
    """Counts what happens, for each combination of labels."""

    def __init__(self, metric: Described) -> None:
        self._metric = metric
        self._values: dict[Labels, float] = {}

    def add(self, *labels: str, value: float = 1.0) -> None:
        """Count something; labels come in the order in which they were named."""
        try:
            self._values[labels] += value
        except KeyError:
            if len(self._values) < MOST_SERIES:
                self._values[labels] = value

    def numbers(self) -> Numbers:
        """Return what was counted."""
        return Numbers(self._metric, [Row(labels, [value]) for labels, value in self._values.items()])


class Histogram:
    """Counts how long things take, by bounds."""

    def __init__(self, metric: Described) -> None:
        self._metric = metric
        self._bounds = metric.bounds
        self._rows: dict[Labels, list[float]] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Count one."""
        row = self._rows.get(labels)
        if row is None:
            if len(self._rows) >= MOST_SERIES:
                return
            row = self._rows[labels] = [0.0] * (len(self._bounds) + 2)
        row[bisect_left(self._bounds, value)] += 1
        row[-1] += value

    def numbers(self) -> Numbers:
        """Return what was counted."""
        return Numbers(self._metric, [Row(labels, list(values)) for labels, values in self._rows.items()])


class Gauge:
    """Something that goes up and down; it is read when someone looks."""

    def __init__(self, metric: Described, read: Callable[[], Mapping[Labels, float]]) -> None:
        self._metric = metric
        self._read = read

    def numbers(self) -> Numbers:
        """Return what it is now."""
        return Numbers(self._metric, [Row(labels, [value]) for labels, value in self._read().items()])


class Metric(Protocol):
    """Something that has numbers."""

    def numbers(self) -> Numbers:
        """Return them."""
        ...


class Registry:
    """The metrics of a process."""

    def __init__(self) -> None:
        self._metrics: list[Metric] = []

    def counter(self, metric: Described) -> Counter:
        """Add a counter."""
        self._metrics.append(made := Counter(metric))
        return made

    def histogram(self, metric: Described) -> Histogram:
        """Add a histogram."""
        self._metrics.append(made := Histogram(metric))
        return made

    def gauge(self, metric: Described, read: Callable[[], Mapping[Labels, float]]) -> None:
        """Add what is read when someone looks; a counter that is kept elsewhere may be read so, too."""
        self._metrics.append(Gauge(metric, read))

    def include(self, other: "Registry") -> None:
        """Have the metrics of another registry, too."""
        self._metrics.extend(other)

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics)

    def numbers(self) -> list[Numbers]:
        """Return what all of them say."""
        return [metric.numbers() for metric in self._metrics]


def merged(groups: Iterable[Iterable[Numbers]]) -> list[Numbers]:
    """Return what several processes counted, added up."""
    found: dict[Described, dict[Labels, list[float]]] = {}
    for group in groups:
        for numbers in group:
            rows = found.setdefault(numbers.metric, {})
            for labels, values in numbers.rows:
                before = rows.get(labels)
                if before is not None:
                    rows[labels] = [one + other for one, other in zip(before, values, strict=True)]
                elif len(rows) < MOST_SERIES:
                    rows[labels] = values
    return [Numbers(metric, [Row(*row) for row in rows.items()]) for metric, rows in found.items()]


def page(numbers: Iterable[Numbers]) -> bytes:
    """Return the page that shows them."""
    return ("\n".join(line for one in numbers for line in _lines(one)) + "\n").encode()


def _lines(numbers: Numbers) -> Iterator[str]:
    """Return the lines of a metric, first what it is."""
    metric = numbers.metric
    help_text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {metric.name} {help_text}"
    yield f"# TYPE {metric.name} {metric.kind}"
    for row in sorted(numbers.rows):
        named = dict(zip(metric.labels, row.labels, strict=True))
        if metric.kind == "histogram":
            yield from _buckets(metric, named, row.values)
        else:
            yield _line(metric.name, named, row.values[0])


def _buckets(metric: Described, named: Mapping[str, str], values: list[float]) -> Iterator[str]:
    """Return the lines of a histogram; each bucket counts all that is not above its bound."""
    below = 0.0
    for bound, count in zip((*metric.bounds, None), values[:-1], strict=True):
        below += count
        yield _line(f"{metric.name}_bucket", {**named, "le": "+Inf" if bound is None else f"{bound:g}"}, below)
    yield _line(f"{metric.name}_sum", named, values[-1])
    yield _line(f"{metric.name}_count", named, below)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    number = f"{value:.0f}" if float(value).is_integer() else repr(float(value))
    return f"{name}{{{shown}}} {number}" if shown else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

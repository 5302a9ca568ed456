"""Traces: jobs remember the span that they were submitted in, and their runs are spans below it.

OpenTelemetry is used where it is loaded already, by the app or because someone named where spans are to be sent; nobody
else pays for it. Without it, a job hands on what it was submitted with.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tidewheel.errors import Invalid
from tidewheel.model.job import JobSpec, Options, Run
from tidewheel.model.trace import Trace, trace_of

if TYPE_CHECKING:
    from tidewheel.observe.otel import RunSpan

_NEEDED: Final = "sending spans needs OpenTelemetry: pip install 'tidewheel[otel]'"
_log = logging.getLogger(__name__)


def is_active() -> bool:
    """Tell whether this process has loaded OpenTelemetry."""
    return "opentelemetry.trace" in sys.modules


def check_endpoint(endpoint: str | None) -> str | None:
    """Return where spans are to be sent. Raises Invalid if they cannot be."""
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        raise Invalid("otel-endpoint", f"must be the http:// or https:// address of a collector, not {endpoint!r}")
    if endpoint is not None and not _is_installed():
        raise Invalid("otel-endpoint", _NEEDED)
    return endpoint


def start(endpoint: str | None, process: str) -> Callable[[], None]:
    """Send spans there, or where OpenTelemetry's own variables say; return what sends the last ones."""
    given = [os.environ.get(f"OTEL_EXPORTER_OTLP_{which}") for which in ("ENDPOINT", "TRACES_ENDPOINT")]
    if (endpoint is None and not any(given)) or os.environ.get("OTEL_TRACES_EXPORTER") == "none":
        return _nothing
    try:
        from tidewheel.observe import otel  # noqa: PLC0415 - an extra, and nobody shall pay for it in vain

        return otel.configure(endpoint, process)
    except ModuleNotFoundError:
        _log.warning(_NEEDED)
        return _nothing


def sending(specs: Sequence[JobSpec], given: Trace | None = None) -> AbstractContextManager[Sequence[JobSpec]]:
    """Submit jobs meanwhile as they come out: they remember the trace that was given, or the one of the caller."""
    if is_active():
        return _sending_spans(specs, given)
    return nullcontext(specs if given is None else [_within(spec, given) for spec in specs])


@contextmanager
def _sending_spans(specs: Sequence[JobSpec], given: Trace | None) -> Iterator[Sequence[JobSpec]]:
    from tidewheel.observe import otel  # noqa: PLC0415 - as above

    with otel.sending(specs, given) as trace:
        yield [_within(spec, trace) for spec in specs]


def current() -> Trace | None:
    """Return the place in a trace where the caller is."""
    if not is_active():
        return None
    from tidewheel.observe import otel  # noqa: PLC0415 - as above

    return otel.current()


def run_span(run: Run, trace: Trace | None) -> "RunSpan | None":
    """Begin the span of a run; None if there are none here."""
    if not is_active():
        return None
    from tidewheel.observe import otel  # noqa: PLC0415 - as above

    return otel.RunSpan(run, trace)


def inside(trace: Trace | None) -> AbstractContextManager[None]:
    """Have spans that are begun meanwhile be below this place."""
    if trace is None or not is_active():
        return nullcontext()
    from tidewheel.observe import otel  # noqa: PLC0415 - as above

    return otel.inside(trace)


def trace_in(options: Options) -> Trace | None:
    """Return what a job was submitted with."""
    return trace_of(options.traceparent, options.tracestate)


def _within(spec: JobSpec, trace: Trace | None) -> JobSpec:
    """Return a job that remembers a trace, unless it has one of its own."""
    if trace is None or trace_in(spec.options) is not None:
        return spec
    return replace(spec, options=replace(spec.options, traceparent=trace.traceparent, tracestate=trace.tracestate))


def _is_installed() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def _nothing() -> None:
    """Do nothing."""

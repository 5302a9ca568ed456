"""OpenTelemetry: the only module that names it. Spans are named and described as its conventions for messaging say."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Final

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tidewheel.model.job import JobSpec, Run
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause
from tidewheel.model.trace import Trace, trace_of

_SYSTEM: Final = "tidewheel"
_PROPAGATOR: Final = TraceContextTextMapPropagator()


def configure(endpoint: str | None, process: str) -> Callable[[], None]:
    """Send the spans of this process by OTLP over HTTP, unless the app does so; return what sends the last ones."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - heavy
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - the same

    if isinstance(api.get_tracer_provider(), TracerProvider):
        return _nothing
    about = {"service.version": version(_SYSTEM), "service.instance.id": process}
    if "OTEL_SERVICE_NAME" not in os.environ:
        about["service.name"] = _SYSTEM
    provider = TracerProvider(resource=Resource.create(about), shutdown_on_exit=False)
    place = None if endpoint is None else f"{endpoint.rstrip('/')}/v1/traces"
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=place)))
    api.set_tracer_provider(provider)
    return provider.shutdown


def current(place: Context | None = None) -> Trace | None:
    """Return where the caller is in a trace."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, place)
    return trace_of(carrier.get("traceparent"), carrier.get("tracestate"))


@contextmanager
def inside(trace: Trace) -> Iterator[None]:
    """Have spans that are begun meanwhile be below this place."""
    mark = contexts.attach(_context_of(trace))
    try:
        yield
    finally:
        contexts.detach(mark)


@contextmanager
def sending(specs: Sequence[JobSpec], given: Trace | None) -> Iterator[Trace | None]:
    """Be in a span that submits jobs, below the place that was given or below the caller's; return it."""
    queues = {spec.queue for spec in specs}
    queue = queues.pop() if len(queues) == 1 else "(several)"
    about: dict[str, Any] = {**_about("send", queue), "messaging.batch.message_count": len(specs)}
    below = None if given is None else _context_of(given)
    with _tracer().start_as_current_span(f"send {queue}", below, kind=SpanKind.PRODUCER, attributes=about):
        yield current()


class RunSpan:
    """The span of a run: below that of its submit, to which it is linked."""

    def __init__(self, run: Run, submitted: Trace | None) -> None:
        below = Context() if submitted is None else _context_of(submitted)
        about: dict[str, Any] = {
            **_about("process", run.queue),
            "messaging.message.id": str(run.job_id),
            "tidewheel.kind": run.kind,
            "tidewheel.tenant": run.tenant,
            "tidewheel.attempt": run.attempt,
        }
        links = [] if submitted is None else [Link(api.get_current_span(below).get_span_context())]
        name = f"process {run.queue}"
        self._span = _tracer().start_span(name, below, kind=SpanKind.CONSUMER, attributes=about, links=links)
        self._place = api.set_span_in_context(self._span, below)
        self.trace = current(self._place)
        """Where the run is, for what it calls."""

    def enter(self) -> None:
        """Let the spans of the present context be below this one."""
        contexts.attach(self._place)

    def end(self, cause: Cause, error: Failure | None = None) -> None:
        """Note what became of the run."""
        self._span.set_attribute("tidewheel.outcome", cause.value)
        if error is not None:
            self._span.set_attribute("error.type", error.reason)
            self._span.set_status(Status(StatusCode.ERROR, error.message))
        self._span.end()


def _nothing() -> None:
    """Do nothing: what is there belongs to others."""


def _tracer() -> api.Tracer:
    return api.get_tracer(_SYSTEM)


def _context_of(trace: Trace) -> Context:
    carrier = {"traceparent": trace.traceparent, "tracestate": trace.tracestate or ""}
    return _PROPAGATOR.extract(carrier, Context())


def _about(operation: str, queue: str) -> dict[str, str]:
    return {
        "messaging.system": _SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": queue,
    }

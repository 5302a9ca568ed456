"""Submits jobs with the real SDK of OpenTelemetry, and prints the spans as JSON.

It is a program of its own: a process that has loaded OpenTelemetry once has it for good.
"""

import asyncio
import json
import sys
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tidewheel import App, Context
from tidewheel.client.options import body_of
from tidewheel.testing import in_memory

SPANS = InMemorySpanExporter()
app = App()


@app.task(name="tell")
async def tell(ctx: Context) -> str | None:
    return ctx.traceparent


def told(span: ReadableSpan) -> dict[str, Any]:
    assert span.context is not None
    return {
        "name": span.name,
        "kind": span.kind.name,
        "traceparent": f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}",
        "parent": None if span.parent is None else f"{span.parent.span_id:016x}",
        "attributes": dict(span.attributes or {}),
    }


async def main() -> dict[str, Any]:
    async with in_memory(app) as test:
        with trace.get_tracer("shop").start_as_current_span("checkout"):
            job = await tell.aenqueue()
            [many, _] = await app.aenqueue_many([tell.si(), tell.si()])
            body = body_of("tell", {}, {})
        await test.arun_inline()
        return {"job": await job.aresult(), "many": await many.aresult(), "body": body["traceparent"]}


def synchronously() -> str | None:
    with in_memory(app), trace.get_tracer("shop").start_as_current_span("in a thread"):
        return tell.enqueue().info().traceparent


provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(SPANS))
trace.set_tracer_provider(provider)
found = {**asyncio.run(main()), "sync": synchronously()}
json.dump({**found, "spans": [told(span) for span in SPANS.get_finished_spans()]}, sys.stdout)

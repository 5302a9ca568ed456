"""An app whose code makes a span of its own, by the API of OpenTelemetry alone."""

from opentelemetry import trace

from tidewheel import App, Context

app = App()


@app.task(name="traced.async")
async def traced_async(ctx: Context) -> str | None:
    with trace.get_tracer("app").start_as_current_span("inner"):
        return ctx.traceparent


@app.task(name="traced.plain", retry=False)
def traced_plain(ctx: Context) -> None:
    raise ValueError(ctx.traceparent)

"""Endpoints that are open to all: health, and the docs."""

from typing import Any, Final

from tidewheel.observe import MEDIA_TYPE
from tidewheel.server.endpoint import HTML, Endpoint
from tidewheel.server.endpoints import system


def _open(path: str, name: str, summary: str, handler: Any, answer: Any) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        name=name,
        summary=summary,
        group="server",
        action=None,
        handler=handler,
        answers={200: answer},
    )


SYSTEM: Final = (
    _open("/livez", "live", "Tell whether the server lives", system.live, system.Health),
    _open("/readyz", "ready", "Tell whether the server can serve requests", system.ready, system.Health),
    _open("/healthz", "healthy", "The same, by the name that many probes ask for", system.ready, system.Health),
    _open("/metrics", "metrics", "Read the numbers of the server, for Prometheus", system.metrics, MEDIA_TYPE),
    _open("/openapi.json", "openapi", "Fetch this document", system.openapi, dict[str, Any]),
    _open("/docs", "docs", "Read the docs", system.docs, HTML),
)

"""The HTTP API: one table of endpoints is the source of its routes, its checks, its OpenAPI document and its docs.

    client ──▶ serving (granian) ──▶ app (one path for every request) ──▶ endpoints ──▶ service (store, blobs, …)

`table` lists the endpoints, `problems` all that can go wrong, `access` and `entrance` who comes in.
"""

from tidewheel.server.app import build_app
from tidewheel.server.service import Service
from tidewheel.server.serving import Address, Serving

__all__ = ["Address", "Service", "Serving", "build_app"]

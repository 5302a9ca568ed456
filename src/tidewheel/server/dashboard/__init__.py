"""The dashboard: pages for people, rendered here and readable without JavaScript.

    request ──▶ dashboard (who is it, may this form be sent) ──▶ pages ──▶ desk ──▶ the endpoints of the API

Pages decide nothing themselves: whatever they show or do is an endpoint's, asked for through the desk with the rights
and the tenant of who looks. `table` lists the pages and deeds, `live` keeps an open page up to date, `assets` and
`rendering` make what is sent, `graph` draws.
"""

from tidewheel.server.dashboard.dashboard import Dashboard
from tidewheel.server.dashboard.request import request_of

__all__ = ["Dashboard", "request_of"]

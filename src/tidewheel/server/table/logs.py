"""Endpoints of what all runs wrote, and of numbers about them."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import EVENTS, Endpoint, RequestHeader
from tidewheel.server.endpoints import log_search, statistics

LOGS: Final = (
    Endpoint(
        method="GET",
        path="/v1/logs",
        name="search_logs",
        summary="Search what runs wrote, newest first",
        description="Lines are found from the moment on at which they are stored.",
        group="logs",
        action=Action.JOBS_READ,
        handler=log_search.search,
        query=log_search.LogSearchQuery,
        answers={200: log_search.FoundPage},
        errors=("bad-cursor",),
    ),
    Endpoint(
        method="GET",
        path="/v1/logs/tail",
        name="follow_logs",
        summary="Follow what runs write as it is stored",
        description="Server-sent events named `log`, each with a line. They begin with the next one to be stored.",
        group="logs",
        action=Action.JOBS_READ,
        handler=log_search.tail,
        query=log_search.LogConditions,
        headers=(RequestHeader.LAST_EVENT_ID,),
        answers={200: EVENTS},
        errors=("bad-header", "overloaded"),
    ),
    Endpoint(
        method="GET",
        path="/v1/stats",
        name="get_statistics",
        summary="Add up what ended, by time, queue, kind and outcome",
        description="By the minute for two days, by the hour for 400. What ended counts at once.",
        group="logs",
        action=Action.JOBS_READ,
        handler=statistics.statistics,
        query=statistics.StatQuery,
        answers={200: statistics.StatList},
    ),
)

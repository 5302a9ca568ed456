"""The table of endpoints: routes, checks, the OpenAPI document and the docs are all made from it."""

from typing import Final

from tidewheel.server.endpoint import Endpoint
from tidewheel.server.table.access import ACCESS
from tidewheel.server.table.alerts import ALERTS
from tidewheel.server.table.artifacts import ARTIFACTS
from tidewheel.server.table.dead_letters import DEAD_LETTERS
from tidewheel.server.table.fleet import FLEET
from tidewheel.server.table.flow import FLOW
from tidewheel.server.table.logs import LOGS
from tidewheel.server.table.looking import LOOKING
from tidewheel.server.table.notifications import NOTIFICATIONS
from tidewheel.server.table.schedules import SCHEDULES
from tidewheel.server.table.secrets import SECRETS
from tidewheel.server.table.steering import STEERING
from tidewheel.server.table.submitting import SUBMITTING
from tidewheel.server.table.system import SYSTEM
from tidewheel.server.table.worker_protocol import WORKER_PROTOCOL

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *SUBMITTING,
    *LOOKING,
    *STEERING,
    *LOGS,
    *SCHEDULES,
    *DEAD_LETTERS,
    *ARTIFACTS,
    *FLOW,
    *NOTIFICATIONS,
    *ALERTS,
    *FLEET,
    *ACCESS,
    *SECRETS,
    *WORKER_PROTOCOL,
    *SYSTEM,
)

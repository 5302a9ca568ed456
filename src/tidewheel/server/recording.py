"""Writing down what a request changed, before it is answered."""

from typing import Any

from tidewheel.errors import OutcomeUnknown, Unavailable
from tidewheel.model.access import Action
from tidewheel.server.endpoint import Call
from tidewheel.server.service import Service


async def record(
    service: Service,
    call: Call[Any, Any],
    action: Action,
    subject: object = "",
    *,
    tenant: str | None = None,
    everywhere: bool = False,
    **detail: Any,
) -> None:
    """Return once a change is in the audit log: one of `tenant`, or else the request's, or one for all.

    Raises OutcomeUnknown if the log cannot be reached: the change was made, and nobody is told so yet.
    """
    whose = None if everywhere else tenant or call.tenant
    try:
        await service.audit.record(call.actor, action, subject, tenant=whose, **detail)
    except Unavailable as error:
        raise OutcomeUnknown("it was done, and could not be written down yet") from error

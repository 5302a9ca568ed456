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
    everywhere: bool = False,
    **detail: Any,
) -> None:
    """Return once a change is in the audit log: one of the request's tenant, or one that concerns all.

    Raises OutcomeUnknown if the log cannot be reached: the change was made, and nobody is told so yet.
    """
    tenant = None if everywhere else call.tenant
    try:
        await service.audit.record(call.actor, action, subject, tenant=tenant, **detail)
    except Unavailable as error:
        raise OutcomeUnknown("it was done, and could not be written down yet") from error

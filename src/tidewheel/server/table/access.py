"""Endpoints of keys, tenants and the audit log."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import auditing, keys, tenants

ACCESS: Final = (
    Endpoint(
        method="POST",
        path="/v1/keys",
        name="create_key",
        summary="Make a key, and show it this once",
        description="An admin of one tenant makes keys of that tenant alone.",
        group="keys",
        action=Action.KEYS_WRITE,
        handler=keys.create,
        body=keys.KeyRequest,
        answers={201: keys.NewKeyDocument},
    ),
    Endpoint(
        method="GET",
        path="/v1/keys",
        name="list_keys",
        summary="List keys, newest first, without what opens doors",
        group="keys",
        action=Action.KEYS_READ,
        handler=keys.find,
        query=keys.KeyQuery,
        answers={200: keys.KeyPage},
        errors=("bad-cursor",),
    ),
    Endpoint(
        method="GET",
        path="/v1/keys/{id}",
        name="get_key",
        summary="Look at a key, without what opens doors",
        group="keys",
        action=Action.KEYS_READ,
        handler=keys.get,
        answers={200: keys.KeyDocument},
    ),
    Endpoint(
        method="DELETE",
        path="/v1/keys/{id}",
        name="revoke_key",
        summary="Make a key open nothing any more, everywhere within a second",
        description="There is no way back. The key stays in the list.",
        group="keys",
        action=Action.KEYS_WRITE,
        handler=keys.revoke,
        answers={200: keys.KeyDocument},
    ),
    Endpoint(
        method="GET",
        path="/v1/tenants",
        name="list_tenants",
        summary="List the tenants; a key of one tenant sees its own",
        group="tenants",
        action=Action.TENANTS_READ,
        handler=tenants.find,
        answers={200: tenants.TenantList},
    ),
    Endpoint(
        method="PUT",
        path="/v1/tenants/{name:path}",
        name="set_tenant",
        summary="Give a tenant its share and bounds",
        group="tenants",
        action=Action.TENANTS_WRITE,
        everywhere=True,
        handler=tenants.set_tenant,
        body=tenants.TenantRequest,
        answers={200: tenants.TenantDocument},
    ),
    Endpoint(
        method="GET",
        path="/v1/audit",
        name="list_audit",
        summary="List who changed what, newest first",
        group="audit",
        action=Action.AUDIT_READ,
        handler=auditing.find,
        query=auditing.AuditQuery,
        answers={200: auditing.EntryPage},
        errors=("bad-cursor",),
    ),
)

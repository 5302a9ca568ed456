"""The shares of tenants."""

import apsw

from tidewheel.model.tenant import Tenant
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.session import Session


def set_weight(session: Session, given: Tenant) -> Tenant:
    """See `store.sharing.ShareStore.set_weight`."""
    number = session.lanes.tenant(session.connection, given.name)
    session.run("set_weight", tenant=number, weight=given.weight)
    session.lanes.changed(session.connection)
    session.lanes.read(session.connection)
    return tenants(session.connection, given.name)[0]


def tenants(connection: apsw.Connection, tenant: str | None = None) -> list[Tenant]:
    """See `store.sharing.ShareStore.tenants`."""
    return [Tenant(*row) for row in rows(connection, "tenants_shown", {"tenant": tenant})]

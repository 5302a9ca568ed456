"""The shares of tenants."""

import apsw

from tidewheel.model.tenant import Tenant
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import some, timedelta_of


def set_weight(session: Session, given: Tenant) -> Tenant:
    """See `store.sharing.ShareStore.set_weight`."""
    number = session.lanes.tenant(session.connection, given.name)
    session.run("set_weight", tenant=number, weight=given.weight)
    session.lanes.changed(session.connection)
    session.lanes.read(session.connection)
    return tenants(session.connection, given.name)[0]


def tenants(connection: apsw.Connection, tenant: str | None = None) -> list[Tenant]:
    """See `store.sharing.ShareStore.tenants`."""
    found = rows(connection, "tenants_shown", {"tenant": tenant})
    return [Tenant(name, weight, most, size, some(timedelta_of, age)) for name, weight, most, size, age in found]

"""Flow control: limits, which are counters by key."""

from typing import Final

import apsw
import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.limit import Limit
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.limits import let_go
from tidewheel.store.sqlite.session import Session

_keys: Final = msgspec.json.Decoder(list[tuple[int, str]]).decode


def set_limit(session: Session, key: str, most: int, tenant: str) -> Limit:
    """See `store.base.FlowStore.set_limit`."""
    number = session.lanes.tenant(session.connection, tenant)
    session.run("set_limit", tenant=number, key=key, most=most)
    session.rows("recount", tenant=number, key=key)
    let_go(session, [(number, key)], session.now)
    (row,) = session.rows("get_limit", tenant=number, key=key)
    return Limit(*row)


def remove_limit(session: Session, key: str, tenant: str) -> None:
    """See `store.base.FlowStore.remove_limit`."""
    number = session.lanes.known_tenant(tenant)
    if number is None or session.value("remove_limit", tenant=number, key=key) is None:
        raise NotFound("limit", key)
    let_go(session, [(number, key)], session.now)


def limits(connection: apsw.Connection, tenant: str | None) -> list[Limit]:
    """See `store.base.FlowStore.limits`."""
    return [Limit(*row) for row in rows(connection, "limits", {"tenant": tenant})]


def repair_limits(session: Session) -> int:
    """See `store.base.FlowStore.repair_limits`. Also lets those go who wait for a key that has no limit any more."""
    wrong = session.rows("recount", tenant=None, key=None)
    let_go(session, _keys(session.value("keys_waited_for")), session.now)
    return len(wrong)

"""Alerts and maintenance windows over HTTP."""

from uuid import UUID

import msgspec

from tidewheel.model.alert import Alert, AlertState, Window, WindowSpec, check_window_spec
from tidewheel.store.access import check_keys_page
from tidewheel.store.remote.transport import Transport, tenant_header


class AlertList(msgspec.Struct, frozen=True):
    """Alerts, newest first."""

    alerts: list[Alert]


class WindowList(msgspec.Struct, frozen=True):
    """Maintenance windows."""

    windows: list[Window]


class Alerting:
    """See `store.alerting.AlertStore`; the server does the watching."""

    _transport: Transport

    async def alerts(
        self, *, tenant: str | None = None, state: AlertState | None = None, limit: int = 100
    ) -> list[Alert]:
        query, headers = {"state": state, "limit": check_keys_page(limit)}, tenant_header(tenant)
        return (await self._transport.get("/v1/alerts", AlertList, query, headers=headers)).alerts

    async def acknowledge(self, alert_id: UUID, by: str, *, tenant: str | None = None) -> Alert:
        """Acknowledge an alert; the server notes whose key it was, and not who is named here."""
        del by
        path, headers = f"/v1/alerts/{alert_id}/acknowledge", tenant_header(tenant)
        return await self._transport.post(path, None, Alert, safe=True, headers=headers)

    async def add_window(self, spec: WindowSpec) -> Window:
        """Add a window; its author is whose key it was."""
        check_window_spec(spec)
        body = {"start": spec.start, "end": spec.end, "rules": sorted(spec.rules), "reason": spec.reason}
        return await self._transport.post("/v1/maintenance", body, Window, safe=False)

    async def windows(self) -> list[Window]:
        return (await self._transport.get("/v1/maintenance", WindowList)).windows

    async def remove_window(self, window_id: UUID) -> None:
        await self._transport.write("DELETE", f"/v1/maintenance/{window_id}", safe=False)

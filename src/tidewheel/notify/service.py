"""Services: e-mail, chat and paging through apprise, an extra that is imported when the first such message goes."""

from typing import Any, Final

from tidewheel.model.channel import Parcel
from tidewheel.model.notification import Answer
from tidewheel.notify.address import AddressGuard, Refused

FREE_FORM: Final = frozenset(("form", "forms", "json", "jsons", "xml", "xmls", "custom"))
"""Services that post to any address; a signed webhook does that, and looks where it goes."""
LOCAL: Final = frozenset(("dbus", "gnome", "kde", "qt", "glib", "macosx", "windows", "syslog", "file", "fcm", "smpp"))
"""Services that speak to the machine of the sender, or read its files."""
_MISSING: Final = "services need an extra: pip install 'tidewheel[notify]'"


async def send_by_service(parcel: Parcel, guard: AddressGuard) -> Answer:
    """Try once. Raises Refused."""
    try:
        import apprise  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise Refused(_MISSING) from None
    scheme = parcel.address.partition("://")[0].lower()
    if scheme in FREE_FORM:
        raise Refused(f"{scheme} is not offered: use a webhook")
    if scheme in LOCAL:
        raise Refused(f"{scheme} is not offered: it belongs to the machine of the sender")
    service = apprise.Apprise.instantiate(parcel.address, suppress_exceptions=True)
    if service is None:
        raise Refused("the address is none that a service knows")
    await _guard_hosts(service, guard)
    title, _, rest = parcel.text.partition("\n")
    hub = apprise.Apprise()
    hub.add(service)
    sent = await hub.async_notify(title=title, body=rest or title)
    return Answer(accepted=bool(sent), told="accepted" if sent else f"{scheme}: the service did not accept it")


async def _guard_hosts(service: Any, guard: AddressGuard) -> None:
    """Look at the hosts that an address names itself; those of a service's own are public."""
    hosts = {getattr(service, name, None) for name in ("host", "smtp_host")}
    for host in hosts:
        if isinstance(host, str) and ("." in host or ":" in host or host == "localhost"):
            await guard.address_of(host, int(getattr(service, "port", None) or 0))

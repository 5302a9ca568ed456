"""Services: e-mail, chat and paging through apprise, an extra that is imported when the first such message goes."""

from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from tidewheel.model.channel import Parcel
from tidewheel.model.notification import Answer
from tidewheel.notify.address import AddressGuard, Refused, Unknown
from tidewheel.notify.connections import Watch, watching
from tidewheel.notify.threads import in_thread

FREE_FORM: Final = frozenset(("form", "forms", "json", "jsons", "xml", "xmls", "custom"))
"""Services that post to any address; a signed webhook does that, and looks where it goes."""
LOCAL: Final = frozenset(
    (
        "dbus",
        "gnome",
        "kde",
        "qt",
        "glib",
        "gio",
        "macosx",
        "windows",
        "syslog",
        "blink1",
        "file",
        "fcm",
        "smpp",
        "vapid",
    )
)
"""Services that speak to the machine of the sender, or read its files."""
FILES: Final = frozenset(("pgppub", "pgpprv", "keyfile", "subfile"))
"""Settings that name files of the sender."""
BARE: Final = frozenset(("rsyslog",))
"""Services that hand their host to a socket as it is, of IPv4: they are given the number that was judged."""
_MISSING: Final = "services need an extra: pip install 'tidewheel[notify]'"


async def send_by_service(parcel: Parcel, guard: AddressGuard) -> Answer:
    """Try once. Raises Refused."""
    scheme = _checked_scheme(parcel.address)
    watch = Watch(guard.allows)
    service = await in_thread(_make, parcel.address, watch)
    await _guard_hosts(service, guard, bare=scheme in BARE)
    sent = await in_thread(_notify, service, parcel.text, watch)
    return Answer(accepted=sent, told="accepted" if sent else f"{scheme}: the service did not accept it")


def _checked_scheme(address: str) -> str:
    parts = urlsplit(address)
    scheme = parts.scheme.lower()
    if scheme in FREE_FORM:
        raise Refused(f"{scheme} is not offered: use a webhook")
    if scheme in LOCAL:
        raise Refused(f"{scheme} is not offered: it belongs to the machine of the sender")
    for name in parse_qs(parts.query, keep_blank_values=True):
        if name.lower() in FILES:
            raise Refused(f"{name.lower()} is not offered: it names a file of the sender")
    return scheme


def _make(address: str, watch: Watch) -> Any:
    """Return the client of a service, which follows no redirects and sends no files."""
    try:
        import apprise  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise Refused(_MISSING) from None
    with watching(watch):
        service = apprise.Apprise.instantiate(address, suppress_exceptions=True)
    if service is None:
        raise Refused("the address is none that a service knows")
    if any(isinstance(value, apprise.AppriseAttachment) and len(value) for value in vars(service).values()):
        raise Refused("template is not offered: it names a file of the sender")
    service.redirects = False
    return service


def _notify(service: Any, text: str, watch: Watch) -> bool:
    import apprise  # noqa: PLC0415 - as above

    title, _, rest = text.partition("\n")
    hub = apprise.Apprise()
    hub.add(service)
    with watching(watch):
        sent = bool(hub.notify(title=title, body=rest or title))
    if watch.refused is not None:
        raise Refused(watch.refused)
    return sent


async def _guard_hosts(service: Any, guard: AddressGuard, *, bare: bool) -> None:
    """Look at the hosts that an address names itself; in the address of a service of its own a token has that place."""
    named = any("{host}" in template for template in service.templates)
    hosts = {getattr(service, name, None) for name in (("host", "smtp_host") if named else ("smtp_host",))}
    for host in hosts:
        if isinstance(host, str) and host:
            try:
                found = await guard.addresses_of(host, int(getattr(service, "port", None) or 0))
            except Unknown:  # a domain need not be a host
                continue
            if bare:
                service.host = next((number for number in found if ":" not in number), found[0])

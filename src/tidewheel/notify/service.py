"""Services: e-mail, chat and paging through apprise, an extra that is imported when the first such message goes."""

import importlib.util
from typing import Any, Final

from tidewheel.errors import Invalid
from tidewheel.model.channel import Parcel, service_of
from tidewheel.model.notification import Answer
from tidewheel.notify.address import AddressGuard, Refused, Unknown
from tidewheel.notify.connections import Watch, watching
from tidewheel.notify.threads import in_thread

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


async def check_address(address: str) -> None:
    """Refuse the address of a service that is not offered, or that is none. Raises Invalid.

    Without the extra only the former is known.
    """
    scheme = service_of(address)
    if scheme is None or importlib.util.find_spec("apprise") is None:
        return
    try:
        await in_thread(_make, address, Watch(lambda _: False))
    except Refused as why:
        raise Invalid("address", f"{why} ({scheme})") from None


def _checked_scheme(address: str) -> str:
    try:
        return service_of(address) or ""
    except Invalid as wrong:
        raise Refused(wrong.why) from None


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

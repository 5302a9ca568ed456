"""Which addresses may be connected to: public ones, and those private ones that an operator allowed.

A name is resolved once and what it stands for is judged; the connection then goes to that very address. So neither an
odd spelling of a number nor a name that changes its meaning between two looks leads anywhere else. An address of IPv6
that stands for one of IPv4 is judged by the latter, in whichever of the many ways it holds it.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from tidewheel.notify.threads import in_thread

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

_PUBLIC: Final = ipaddress.IPv6Network("2000::/3")
"""All that was ever given out; what lies beyond is local, reserved, or stands for something else."""
_LAST_BITS: Final = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "::/96",  # "compatible", long out of use
        "::ffff:0:0:0/96",  # translated by a host
        "64:ff9b::/96",  # translated on the way
    )
)
"""Networks whose last 32 bits are an address of IPv4."""
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
"""What the third quarter is if the last one is an address of IPv4, in any network."""
_LOW_BITS: Final = 2**32 - 1


class Refused(Exception):
    """An address must not, or cannot, be connected to; the words may be shown."""


class Unknown(Refused):
    """There is no such host."""


class AddressGuard:
    """Turns names into addresses that may be connected to."""

    def __init__(self, allowed: Iterable[str] = (), resolve: Resolve | None = None) -> None:
        self._allowed = tuple(ipaddress.ip_network(text) for text in allowed)
        self._resolve = resolve or _ask_system

    async def address_of(self, host: str, port: int) -> str:
        """Return the address to connect to. Raises Refused, also if only some of several are private."""
        return (await self.addresses_of(host, port))[0]

    async def addresses_of(self, host: str, port: int) -> list[str]:
        """Return all of them, at least one. Raises Refused."""
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise Unknown("the host is not known") from None
        if not found:
            raise Unknown("the host is not known")
        if not all(self.allows(text) for text in found):
            raise Refused("the host has a private address, which is not allowed")
        return [text.partition("%")[0] for text in found]

    def allows(self, address: str) -> bool:
        """Return whether an address, written as a number, may be connected to."""
        return self._may_be_used(ipaddress.ip_address(address.partition("%")[0]))

    def _may_be_used(self, address: IpAddress) -> bool:
        if any(address.version == network.version and address in network for network in self._allowed):
            return True
        meant = embedded(address)
        if meant is not None:
            return self._may_be_used(meant)
        if isinstance(address, ipaddress.IPv6Address) and address not in _PUBLIC:
            return False
        return address.is_global and not address.is_multicast


def embedded(address: IpAddress) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that one of IPv6 stands for, if it is of such a kind."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if any(address in network for network in _LAST_BITS) or (int(address) >> 32) & _LOW_BITS in _ISATAP:
        return ipaddress.IPv4Address(int(address) & _LOW_BITS)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


async def _ask_system(host: str, port: int) -> list[str]:
    found = await in_thread(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]

"""Sends one message by the channel that it is for, and says what came of it. It never raises, nor says a secret."""

import asyncio
from typing import Final

from tidewheel.clock import Clock
from tidewheel.model.channel import ChannelType, Parcel
from tidewheel.model.notification import Answer
from tidewheel.notify.address import AddressGuard, Refused
from tidewheel.notify.service import send_by_service
from tidewheel.notify.webhook import Webhooks

TIMEOUT: Final = 30.0
"""Seconds for one message, whatever its channel; less than the time for which it was taken."""


class Sender:
    """Open for as long as there may be something to send."""

    def __init__(self, guard: AddressGuard, clock: Clock, timeout: float = TIMEOUT) -> None:
        self._guard = guard
        self._timeout = timeout
        self._webhooks = Webhooks(guard, clock)

    async def send(self, parcel: Parcel) -> Answer:
        """Try once."""
        try:
            async with asyncio.timeout(self._timeout):
                if parcel.type is ChannelType.WEBHOOK:
                    return await self._webhooks.send(parcel)
                return await send_by_service(parcel, self._guard)
        except TimeoutError:
            return Answer(accepted=False, told=f"no answer within {self._timeout:g} s")
        except Refused as why:
            return Answer(accepted=False, told=str(why))
        except Exception as error:  # noqa: BLE001 - one bad channel must not stop the others, nor tell its address
            return Answer(accepted=False, told=f"could not be sent: {type(error).__name__}")

"""The tasks of `tide demo`: a shop that never sleeps. They do nothing but take their time, and fail now and then."""

import random
from typing import Final

from tidewheel import App, Fatal
from tidewheel.clock import SystemClock

app = App()

_luck: Final = random.Random()  # noqa: S311 - an example, not a secret


async def _take(least: float, most: float) -> None:
    await SystemClock().sleep(_luck.uniform(least, most))


@app.task(name="shop.charge", queue="orders", priority="high", retry=3)
async def charge(order: int) -> dict[str, int]:
    """One in five cards is refused at first; a retry mostly helps."""
    await _take(0.2, 1)
    if _luck.random() < 0.2:  # noqa: PLR2004
        raise ConnectionError("the bank did not answer")
    return {"order": order, "paid": 10 + order % 90}


@app.task(name="shop.pack", queue="orders")
async def pack(paid: dict[str, int]) -> dict[str, int]:
    """Come second in the chain."""
    await _take(0.5, 2)
    return {**paid, "parcels": 1 + paid["order"] % 3}


@app.task(name="shop.ship", queue="orders")
async def ship(packed: dict[str, int]) -> str:
    """Come last in the chain."""
    await _take(0.2, 1)
    return f"order {packed['order']} left in {packed['parcels']} parcels"


@app.task(name="shop.thumbnail", queue="images", priority="low", concurrency=2)
async def thumbnail(picture: str) -> str:
    """Two at once at the most: the others wait for their turn as `limited`."""
    await _take(1, 3)
    return f"{picture}.small"


@app.task(name="shop.newsletter", queue="mail", priority="low")
async def newsletter(to: str) -> str:
    """Held by a gate until someone opens it."""
    await _take(0.1, 0.5)
    return f"sent to {to}"


@app.task(name="shop.refund", queue="orders", retry=2)
async def refund(order: int) -> None:
    """Dead letters come from here."""
    await _take(0.1, 0.3)
    raise Fatal(f"order {order} was never paid")


@app.task(name="shop.heartbeat", queue="orders", every="5s", schedule="shop-heartbeat")
async def heartbeat() -> str:
    """Fire every few seconds, to be watched."""
    await _take(0.1, 0.3)
    return "all is well"


@app.task(name="shop.checkout", queue="orders", priority="high", retry=2, every="3s", schedule="shop-checkout")
async def checkout() -> str:
    """Fail often enough that there are always retries to see, and now and then a dead letter."""
    await _take(0.1, 1)
    if _luck.random() < 0.4:  # noqa: PLR2004
        raise TimeoutError("the basket did not answer")
    return "paid"


@app.task(name="shop.restock", queue="images", every="20s", schedule="shop-restock", overlap="skip")
async def restock() -> int:
    """Take about as long as the interval, so that now and then an occurrence is skipped."""
    await _take(10, 25)
    return _luck.randrange(100)


@app.task(name="shop.report", queue="orders", cron="0 5 * * *", timezone="Europe/Paris", schedule="shop-nightly-report")
async def report() -> str:
    """Fire at night, by the clocks of Paris."""
    await _take(1, 2)
    return "nothing to report"

"""The event loop of a child goes on, whatever is raised in it."""

import asyncio
import sys

import pytest

from tidewheel.worker.child import run_on


def test_a_loop_goes_on_when_someone_leaves_the_program() -> None:
    seen: list[str] = []

    async def leave() -> None:
        raise SystemExit(3)

    async def whole() -> None:
        for error in (SystemExit, KeyboardInterrupt):
            with pytest.raises(SystemExit):
                await asyncio.gather(leave(), asyncio.sleep(0))  # noqa: TID251 - lets it run
            asyncio.get_running_loop().call_soon(_raise, error)
            await asyncio.sleep(0)  # noqa: TID251 - as above
            seen.append(error.__name__)

    run_on(whole())

    assert seen == ["SystemExit", "KeyboardInterrupt"]


def test_what_the_child_itself_raises_ends_it() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)  # noqa: TID251 - lets it run
        raise ValueError("broken")

    async def leave() -> None:
        sys.exit(5)

    with pytest.raises(ValueError, match="broken"):
        run_on(fail())
    with pytest.raises(SystemExit, match="5"):
        run_on(leave())


def _raise(error: type[BaseException]) -> None:
    raise error

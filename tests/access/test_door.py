"""The door: who comes in, with and without keys, and how often."""

import asyncio
from pathlib import Path

import pytest

from tests.access.conftest import SECOND, give_out
from tidewheel.errors import Invalid, Unauthenticated
from tidewheel.model.access import Action, Role
from tidewheel.model.api_key import flaw_of
from tidewheel.model.request_rate import Rate
from tidewheel.server.access import Auth, Door, Keyless, check_exposure, ensure_first_key, is_loopback, token_of
from tidewheel.store.sqlite import SqliteStore, open_store
from tidewheel.testing import FakeClock

HERE = "127.0.0.1"


async def test_on_loopback_nobody_needs_a_key_before_there_is_one(store: SqliteStore, clock: FakeClock) -> None:
    door = Door(store, clock, keyless=check_exposure("127.0.0.1", Auth.AUTO))
    local = (await door.admit(None, HERE)).actor
    assert (local.role, local.tenant, local.key_id, local.name) == (Role.ADMIN, None, None, "local")
    text, key = await give_out(store, tenant="ada")
    await clock.advance(SECOND)
    with pytest.raises(Unauthenticated):
        await door.admit(None, HERE)
    came = (await door.admit(text, HERE)).actor
    assert (came.role, came.tenant, came.key_id) == (Role.VIEWER, "ada", key.id)
    await door.close()


async def test_a_revoked_key_does_not_open_the_door_for_all(store: SqliteStore, clock: FakeClock) -> None:
    text, key = await give_out(store)
    await store.revoke_key(key.id, by=key.actor)
    door = Door(store, clock, keyless=Keyless.UNTIL_A_KEY)
    for wrong in (None, text, ""):
        with pytest.raises(Unauthenticated):
            await door.admit(wrong, HERE)


async def test_anywhere_else_a_key_is_needed_from_the_start(store: SqliteStore, clock: FakeClock) -> None:
    door = Door(store, clock, keyless=check_exposure("192.0.2.1", Auth.AUTO))
    with pytest.raises(Unauthenticated):
        await door.admit(None, HERE)
    first = await ensure_first_key(store)
    assert first is not None
    assert flaw_of(first) is None
    actor = (await door.admit(first, HERE)).actor
    assert (actor.role, actor.tenant, actor.may(Action.KEYS_WRITE)) == (Role.ADMIN, None, True)
    assert await ensure_first_key(store) is None
    await door.close()


async def test_of_servers_that_start_at_once_one_shows_the_first_key(tmp_path: Path) -> None:
    stores = [await open_store(tmp_path / "jobs.db") for _ in range(4)]
    shown = [text for text in await asyncio.gather(*map(ensure_first_key, stores)) if text is not None]
    assert len(shown) == 1
    assert len(await stores[0].keys()) == 1
    for store in stores:
        await store.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_is_only_reached_from_here(host: str) -> None:
    assert is_loopback(host)
    assert check_exposure(host, Auth.AUTO) is Keyless.UNTIL_A_KEY
    assert check_exposure(host, Auth.REQUIRED) is Keyless.NEVER
    assert check_exposure(host, Auth.OFF) is Keyless.ALWAYS


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.com", "localhost.evil.example", "127.1"])
def test_bound_to_anything_else_a_server_refuses_to_start_without_keys(host: str) -> None:
    assert check_exposure(host, Auth.AUTO) is Keyless.NEVER
    with pytest.raises(Invalid, match="auth: cannot be off"):
        check_exposure(host, Auth.OFF)


async def test_switched_off_stays_off(store: SqliteStore, clock: FakeClock) -> None:
    await give_out(store)
    door = Door(store, clock, keyless=Keyless.ALWAYS)
    assert (await door.admit(None, HERE)).actor.name == "local"


async def test_each_key_has_its_own_rate_and_the_answer_says_how_it_stands(
    store: SqliteStore, clock: FakeClock
) -> None:
    slow, _ = await give_out(store, rate=1.0, burst=2)
    other, _ = await give_out(store)
    door = Door(store, clock, keyless=Keyless.NEVER, rate=Rate(100.0, 5))
    assert [(await door.admit(slow, HERE)).too_often for _ in range(3)] == [False, False, True]
    last = await door.admit(slow, HERE)
    assert last.fields == {"RateLimit-Policy": '"key";q=2;w=2', "RateLimit": '"key";r=0;t=2', "Retry-After": "1"}
    assert (await door.admit(other, HERE)).fields == {
        "RateLimit-Policy": '"key";q=5;w=1',
        "RateLimit": '"key";r=4;t=1',
    }
    await clock.advance(SECOND)
    assert not (await door.admit(slow, HERE)).too_often
    await door.close()


async def test_without_a_bound_nothing_is_counted(store: SqliteStore, clock: FakeClock) -> None:
    text, _ = await give_out(store)
    burst_alone, _ = await give_out(store, burst=7)
    door = Door(store, clock, keyless=Keyless.NEVER)
    for key in (text, burst_alone):
        admitted = await door.admit(key, HERE)
        assert (admitted.too_often, admitted.fields) == (False, {})
    await door.close()
    bounded = Door(store, clock, keyless=Keyless.NEVER, rate=Rate(2.0, 3))
    allowance = (await bounded.admit(burst_alone, HERE)).allowance
    assert allowance is not None
    assert allowance.limit == 7
    await bounded.close()


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("", ""),
        ("abc", ""),
        ("Bearer a b", "a b"),
    ],
)
def test_a_key_comes_as_a_bearer_token_and_all_else_is_a_wrong_key(header: str | None, token: str | None) -> None:
    assert token_of(header) == token

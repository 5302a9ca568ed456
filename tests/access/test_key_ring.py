"""Keys are recognised quickly, forgotten within half a second, and guessing is slow."""

import asyncio
import logging
from datetime import timedelta

import pytest

from tests.access.conftest import ROOT, SECOND, Watched, give_out
from tidewheel.errors import TooMany, Unauthenticated, Unavailable
from tidewheel.model.api_key import ENTROPY, NO_PREFIX, make_key
from tidewheel.model.request_rate import Rate
from tidewheel.server.access.key_ring import REMEMBER, KeyRing, group_of
from tidewheel.store.sqlite import SqliteStore
from tidewheel.testing import FakeClock

UNKNOWN = make_key(bytes(ENTROPY)).text
HERE = "192.0.2.1"


@pytest.fixture
def watched(store: SqliteStore) -> Watched:
    return Watched(store)


@pytest.fixture
async def ring(watched: Watched, clock: FakeClock) -> KeyRing:
    return KeyRing(watched, clock)


async def refused(ring: KeyRing, text: str, address: str = HERE) -> Unauthenticated:
    with pytest.raises(Unauthenticated) as error:
        await ring.recognise(text, address)
    return error.value


async def test_a_good_key_is_looked_up_once_in_half_a_second(
    ring: KeyRing, watched: Watched, store: SqliteStore, clock: FakeClock
) -> None:
    text, key = await give_out(store)
    for _ in range(100):
        assert (await ring.recognise(text, HERE)).id == key.id
    assert watched.asked == [key.prefix]
    await clock.advance(timedelta(seconds=REMEMBER))
    await ring.recognise(text, HERE)
    assert len(watched.asked) == 2
    await ring.close()


async def test_a_thousand_at_once_make_one_look(ring: KeyRing, watched: Watched, store: SqliteStore) -> None:
    text, _ = await give_out(store)
    await asyncio.gather(*(ring.recognise(text, HERE) for _ in range(1000)))
    assert len(watched.asked) == 1
    await ring.close()


async def test_one_who_goes_away_does_not_disturb_the_others(ring: KeyRing, store: SqliteStore) -> None:
    text, key = await give_out(store)
    first, second = (asyncio.ensure_future(ring.recognise(text, HERE)) for _ in range(2))
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    first.cancel()
    assert (await second).id == key.id
    await ring.close()


async def test_revoking_is_felt_within_a_second_in_every_process(store: SqliteStore, clock: FakeClock) -> None:
    text, key = await give_out(store)
    rings = [KeyRing(store, clock) for _ in range(3)]
    for ring in rings:
        await ring.recognise(text, HERE)
    await store.revoke_key(key.id, by=ROOT)
    await clock.advance(SECOND)
    for ring in rings:
        await refused(ring, text)
        await ring.close()


async def test_time_spent_looking_counts(ring: KeyRing, watched: Watched, store: SqliteStore, clock: FakeClock) -> None:
    text, _ = await give_out(store)
    ask = watched.find_key

    async def slowly(prefix: str) -> object:
        found = await ask(prefix)
        await clock.advance(SECOND)
        return found

    watched.find_key = slowly  # type: ignore[method-assign,assignment]
    await ring.recognise(text, HERE)
    await ring.recognise(text, HERE)
    assert len(watched.asked) == 2, "what was true a second ago is not remembered"
    await ring.close()


async def test_whatever_is_wrong_with_a_key_the_answer_and_the_steps_to_it_are_the_same(
    ring: KeyRing, watched: Watched, store: SqliteStore, clock: FakeClock
) -> None:
    good, key = await give_out(store)
    expired, _ = await give_out(store, lifetime=SECOND)
    revoked, gone = await give_out(store)
    await store.revoke_key(gone.id, by=ROOT)
    await clock.advance(SECOND)
    wrong = [expired, revoked, UNKNOWN, good[:-1], good[:-1] + "_", "", "tide_", "x" * 100_000, "\ud800"]
    answers = [await refused(ring, text) for text in wrong]
    assert {str(answer) for answer in answers} == {"a valid key is needed"}
    assert len(watched.asked) == len(wrong), "one look each"
    assert watched.asked[3:] == [NO_PREFIX] * 6
    assert (await ring.recognise(good, HERE)).id == key.id
    await ring.close()


async def test_a_prefix_alone_opens_nothing(ring: KeyRing, store: SqliteStore) -> None:
    text, key = await give_out(store)
    entropy = bytes(range(ENTROPY))
    other = make_key(entropy).text
    assert other != text
    forged = f"tide_{key.prefix}_" + other[14:]
    await refused(ring, forged)
    assert await store.find_key(key.prefix) is not None


async def test_guessing_is_slow_and_asks_the_store_no_more(
    watched: Watched, store: SqliteStore, clock: FakeClock
) -> None:
    ring = KeyRing(watched, clock, wrong=Rate(1.0, 3))
    text, key = await give_out(store)
    await ring.recognise(text, HERE)
    for n in range(3):
        await refused(ring, f"{UNKNOWN}{n}")
    looks = len(watched.asked)
    with pytest.raises(TooMany) as slow:
        await ring.recognise("another guess", HERE)
    assert (slow.value.retry_after, len(watched.asked)) == (1, looks)
    assert "guess" not in str(slow.value)
    await refused(ring, UNKNOWN, "192.0.2.2")
    await clock.advance(timedelta(seconds=REMEMBER))
    assert (await ring.recognise(text, HERE)).id == key.id, "who was good stays welcome"
    await clock.advance(SECOND)
    await refused(ring, UNKNOWN)
    await ring.close()


async def test_a_hundred_guesses_at_once_are_no_way_around(watched: Watched, clock: FakeClock) -> None:
    ring = KeyRing(watched, clock, wrong=Rate(1.0, 5))
    answers = await asyncio.gather(*(ring.recognise(f"guess{n}", HERE) for n in range(100)), return_exceptions=True)
    assert [type(answer) for answer in answers].count(TooMany) == 95
    assert len(watched.asked) == 5


async def test_nobody_is_kept_out_by_the_wrong_keys_of_others_behind_the_same_proxy(
    watched: Watched, store: SqliteStore, clock: FakeClock
) -> None:
    ring = KeyRing(watched, clock, wrong=Rate(1.0, 2))
    text, key = await give_out(store)
    for n in range(2):
        await refused(ring, f"{UNKNOWN}{n}")
    guesses = [make_key(bytes([n]) * ENTROPY).text for n in range(1, 50)]
    brought = [*guesses[:25], text, *guesses[25:]]
    told = await asyncio.gather(*(ring.recognise(one, HERE) for one in brought), return_exceptions=True)
    assert getattr(told.pop(25), "id", None) == key.id, "a key that this process sees for the first time"
    assert {type(one) for one in told} == {TooMany}, "as slow as before"
    await ring.close()


async def test_good_keys_cost_nothing_of_what_guesses_may(store: SqliteStore, clock: FakeClock) -> None:
    ring = KeyRing(store, clock, wrong=Rate(1.0, 2))
    for _ in range(5):
        await ring.recognise((await give_out(store))[0], HERE)
    await ring.close()


async def test_that_a_key_was_used_is_written_once_a_minute(
    ring: KeyRing, watched: Watched, store: SqliteStore, clock: FakeClock
) -> None:
    text, _ = await give_out(store)
    for _ in range(100):
        await ring.recognise(text, HERE)
        await ring.close()
        await clock.advance(SECOND)
    assert watched.noted == 2
    ((key),) = await store.keys()
    assert key.last_used_at is not None


async def test_a_store_that_is_gone_is_no_reason_to_let_anyone_in(
    watched: Watched, store: SqliteStore, clock: FakeClock
) -> None:
    ring = KeyRing(watched, clock)
    text, _ = await give_out(store)
    await ring.recognise(text, HERE)
    await ring.close()
    await store.close()
    await clock.advance(SECOND)
    with pytest.raises(Unavailable):
        await ring.recognise(text, HERE)


async def test_no_key_is_ever_logged(store: SqliteStore, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    class Forgetful(Watched):
        async def note_key_use(self, key_id: object) -> None:  # noqa: ARG002
            raise Unavailable("no")

    text, key = await give_out(store)
    ring = KeyRing(Forgetful(store), clock)
    with caplog.at_level(logging.DEBUG):
        await ring.recognise(text, HERE)
        await ring.close()
        await refused(ring, UNKNOWN)
    assert key.prefix in caplog.text
    for secret in (text, UNKNOWN, text[14:], UNKNOWN[14:]):
        assert secret not in caplog.text


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unix:", "unix:"),
        ("x" * 500, "x" * 100),
    ],
)
def test_an_ipv6_network_counts_as_one_place(address: str, group: str) -> None:
    assert group_of(address) == group

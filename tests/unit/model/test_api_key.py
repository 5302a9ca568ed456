"""Keys: how they look, and what is told of one that is none."""

import hashlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NOON
from tidewheel.errors import Invalid
from tidewheel.model.access import Role
from tidewheel.model.api_key import (
    ENTROPY,
    NO_PREFIX,
    ApiKey,
    Known,
    check_prefix,
    digest_of,
    flaw_of,
    make_key,
    prefix_of,
    recognise,
)
from tidewheel.model.ids import make_id

SOME = make_key(bytes(range(ENTROPY)))
entropies = st.binary(min_size=ENTROPY, max_size=ENTROPY)


def known(text: str, **fields: object) -> Known:
    values = {"id": make_id(1, 1), "prefix": prefix_of(text), "name": "k", "role": Role.VIEWER, "created_at": NOON}
    return Known(ApiKey(**{**values, **fields}), digest_of(text), NOON)  # type: ignore[arg-type]


@given(entropies)
def test_a_key_carries_all_its_random_bits_in_a_form_that_needs_no_quoting(entropy: bytes) -> None:
    key = make_key(entropy)
    assert flaw_of(key.text) is None
    assert len(key.text) == 63
    assert key.text.replace("_", "").isalnum()
    assert key.text.startswith(f"tide_{key.proof.prefix}_")
    assert prefix_of(key.text) == key.proof.prefix
    assert key.proof.digest == hashlib.sha256(key.text.encode()).digest()


@given(entropies, entropies)
def test_different_bits_make_different_keys(one: bytes, other: bytes) -> None:
    assert (make_key(one).text == make_key(other).text) is (one == other)


def test_a_key_is_not_printed_by_accident() -> None:
    assert SOME.text not in f"{SOME} {SOME!r}"
    assert SOME.proof.prefix in repr(SOME)


def test_too_few_random_bytes_are_no_key() -> None:
    with pytest.raises(ValueError, match="made of 37 bytes"):
        make_key(bytes(ENTROPY - 1))


@pytest.mark.parametrize("length", range(len("tide_"), 63))
def test_a_key_that_was_cut_off_is_told_apart_from_an_unknown_one(length: int) -> None:
    assert "cut off" in (flaw_of(SOME.text[:length]) or "")
    assert prefix_of(SOME.text[:length]) == NO_PREFIX


@given(st.integers(5, 62), st.sampled_from("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-é\0"))
def test_one_wrong_character_is_noticed(place: int, char: str) -> None:
    wrong = SOME.text[:place] + char + SOME.text[place + 1 :]
    assert (flaw_of(wrong) is None) is (wrong == SOME.text)


@pytest.mark.parametrize("text", ["", "tide", "bearer", "ghp_" + "a" * 59, SOME.text + "a", " " + SOME.text, "\ud800"])
def test_what_is_no_key_is_looked_up_by_a_prefix_that_no_key_has(text: str) -> None:
    assert flaw_of(text) is not None
    assert prefix_of(text) == NO_PREFIX
    assert len(digest_of(text)) == 32


def test_only_the_very_key_is_recognised_and_only_while_it_is_valid() -> None:
    digest, other = digest_of(SOME.text), digest_of(make_key(bytes(ENTROPY)).text)
    good = known(SOME.text, expires_at=NOON + timedelta(seconds=1))
    assert recognise(digest, good) == good.key
    assert recognise(other, good) is None
    assert recognise(digest, None) is None
    assert recognise(bytes(32), None) is None
    assert recognise(digest, known(SOME.text, expires_at=NOON)) is None
    assert recognise(digest, known(SOME.text, revoked_at=NOON - timedelta(days=1))) is None


@pytest.mark.parametrize("text", ["", "abc", SOME.text, "abcd 234", "abcdéfgh", "tide_abcd23456"])
def test_a_key_is_named_by_its_prefix_and_never_by_itself(text: str) -> None:
    with pytest.raises(Invalid, match="by its prefix") as refused:
        check_prefix(text)
    assert SOME.text not in str(refused.value)
    assert check_prefix("tide_abcd2345") == check_prefix("abcd2345") == "abcd2345"

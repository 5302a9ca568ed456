"""How stored secrets are encrypted, and what is said of keys."""

import base64
import importlib.util

import pytest

from tidewheel.errors import Invalid, SecretsLocked
from tidewheel.store.sealing import Keyring, Sealed

ONE, TWO = b"1" * 32, b"\xff\xfe" * 16
TEXT = "correct horse"
NOT_OPENED = "cannot be opened: it is damaged, or was stored under another name"


def as_text(key: bytes) -> str:
    return base64.b64encode(key).decode()


def test_the_first_key_seals_and_each_opens_what_it_sealed() -> None:
    old, both = Keyring([ONE]), Keyring.read(f" {as_text(TWO)},\n{as_text(ONE)} ")
    sealed = old.seal("ada", "db", TEXT)
    assert both.unseal("ada", "db", sealed) == TEXT
    assert both.seal("ada", "db", TEXT).key_id == both.first != old.first == sealed.key_id
    assert old.unseal("ada", "db", old.seal("ada", "db", TEXT)) == TEXT


def test_the_same_text_is_never_sealed_alike() -> None:
    ring = Keyring([ONE])
    assert ring.seal("ada", "db", TEXT) != ring.seal("ada", "db", TEXT)


@pytest.mark.parametrize(("tenant", "name"), [("bob", "db"), ("ada", "dc"), ("ad", "adb"), ('ada","', "b")])
def test_what_was_moved_elsewhere_opens_no_more(tenant: str, name: str) -> None:
    ring = Keyring([ONE])
    with pytest.raises(SecretsLocked, match=NOT_OPENED):
        ring.unseal(tenant, name, ring.seal("ada", "db", TEXT))


@pytest.mark.parametrize("place", [0, 11, 13, -1])
def test_what_was_changed_or_cut_opens_no_more(place: int) -> None:
    ring = Keyring([ONE])
    key_id, data = ring.seal("ada", "db", TEXT)
    changed = bytearray(data)
    changed[place] ^= 1
    for spoilt in (bytes(changed), data[:place], b""):
        with pytest.raises(SecretsLocked, match=NOT_OPENED):
            ring.unseal("ada", "db", Sealed(key_id, spoilt))


@pytest.mark.parametrize("text", ["x", "short" * 3, as_text(ONE[:31]), as_text(ONE + b"1"), f"{as_text(ONE)} ü", "=="])
def test_what_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        Keyring.read(text)
    assert str(refused.value) == ("secrets_key: each key must be 32 bytes in base64, as of `openssl rand -base64 32`")


def test_keys_may_be_written_for_urls_too() -> None:
    assert Keyring.read(base64.urlsafe_b64encode(TWO).decode()).first == Keyring([TWO]).first


def test_a_ring_shows_no_key() -> None:
    assert "1111" not in repr(Keyring([ONE]))


@pytest.mark.parametrize("text", [None, "", " \n, "])
def test_there_may_be_no_key(text: str | None) -> None:
    with pytest.raises(SecretsLocked, match="no key is configured for stored secrets: set TIDE_SECRETS_KEY"):
        Keyring.read(text).seal("ada", "db", TEXT)


def test_a_key_without_the_extra_is_refused_when_the_store_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(Invalid, match=r"pip install 'tidewheel\[secrets\]'"):
        Keyring.read(as_text(ONE))

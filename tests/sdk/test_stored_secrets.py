"""Stored secrets in both faces of the SDK."""

import pytest

from tests.api.conftest import SECRETS_KEY
from tidewheel import App
from tidewheel.errors import Invalid, NotFound, SecretsLocked
from tidewheel.testing import in_memory

app = App("sqlite:///never-opened.db", tenant="ada")


def test_a_secret_is_stored_listed_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDE_SECRETS_KEY", SECRETS_KEY)
    with in_memory(app):
        made = app.secrets.set("stripe_key", "sk_live_1234")
        assert (made.name, made.tenant, made.version, made.changed_by) == ("stripe_key", "ada", 1, "sdk")
        assert app.secrets.list() == [made]
        with pytest.raises(Invalid, match="value"):
            app.secrets.set("stripe_key", "abc")
        app.secrets.remove("stripe_key")
        with pytest.raises(NotFound):
            app.secrets.remove("stripe_key")


async def test_the_same_in_async_code_which_without_a_key_says_so() -> None:
    async with in_memory(app):
        with pytest.raises(SecretsLocked, match="set TIDE_SECRETS_KEY"):
            await app.secrets.aset("stripe_key", "sk_live_1234")
        assert await app.secrets.alist() == []
        with pytest.raises(NotFound):
            await app.secrets.aremove("stripe_key")

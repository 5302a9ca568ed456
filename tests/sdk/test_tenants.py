"""The shares of tenants in both faces of the SDK."""

import pytest

from tidewheel import App
from tidewheel.errors import Invalid
from tidewheel.model.tenant import Tenant
from tidewheel.testing import in_memory

app = App("sqlite:///never-opened.db")


def test_a_tenant_is_given_a_weight() -> None:
    with in_memory(app):
        assert app.tenants.set_weight("acme", 3) == Tenant("acme", 3.0)
        assert app.tenants.list() == [Tenant("acme", 3.0)]
        with pytest.raises(Invalid, match="weight"):
            app.tenants.set_weight("acme", 0)


async def test_the_same_in_async_code() -> None:
    async with in_memory(app):
        await app.tenants.aset_weight("acme", 0.5)
        assert await app.tenants.alist() == [Tenant("acme", 0.5)]

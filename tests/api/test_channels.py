"""Channels over HTTP: which addresses are refused, and a test message with what is written down of it."""

import pytest

from tests.api.conftest import Api, problem


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what apprise imports
async def test_an_address_of_no_service_is_refused_by_its_field(api: Api) -> None:
    for address, why in (
        ("slak://nonsense", "the address is none that a service knows (slak)"),
        ("file:///etc/x", "file is not offered: it belongs to the machine of the sender"),
        ("json://127.0.0.1/x", "json is not offered: use a webhook"),
    ):
        refused = await api.client.post("/v1/channels", json={"name": "ops", "address": address})
        [error] = problem(refused, 422, "invalid")["errors"]
        assert (error["pointer"], error["detail"]) == ("/address", why)
    assert (await api.client.get("/v1/channels")).json() == {"channels": []}


async def test_a_test_message_is_in_the_delivery_log_and_in_the_audit_log(api: Api) -> None:
    made = (await api.client.post("/v1/channels", json={"name": "ops", "address": "https://example.org"})).json()
    answer = await api.client.post(f"/v1/channels/{made['id']}/test")
    assert (answer.status_code, answer.json()["event"], answer.json()["state"]) == (200, "test", "pending")
    assert (await api.client.get("/v1/deliveries")).json()["deliveries"] == [answer.json()]
    done = [entry["detail"] for entry in (await api.client.get("/v1/audit")).json()["entries"]]
    assert {"did": "test"} in done

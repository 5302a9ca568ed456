"""`tide notify` and `tide alert`, straight on the store and through a server."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.api.test_processes import tide as running
from tests.cli.terminal import Done, tide
from tests.cli.test_servers import served  # noqa: F401 - a fixture
from tests.notify.receiving import receiving
from tidewheel.model.alert import Finding, Rule
from tidewheel.model.notification import Answer
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store


class Place(NamedTuple):
    """Where commands run, where Tidewheel is, and the file behind it."""

    folder: Path
    where: dict[str, str]
    database: Path
    me: str
    """Who is noted to have done it."""

    def run(self, *words: str) -> Done:
        return tide(self.folder, *words, **self.where)

    def answer(self, *words: str) -> Any:
        done = self.run(*words, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def prepare(self, *findings: Finding) -> None:
        """Let a keeper find something, and send what is to be sent."""

        async def work() -> None:
            store: Store = await open_store(self.database)
            await store.keep_alerts(findings)
            await store.spread_happenings()
            for parcel in await store.take_deliveries():
                await store.close_delivery(parcel, Answer(accepted=True, told="answered 204"))
            await store.close()

        asyncio.run(work())


@pytest.fixture(params=["store", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "store":
        return Place(tmp_path, {}, tmp_path / "jobs.db", "cli:")
    folder, url, key = request.getfixturevalue("served")
    where = {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_DATABASE": "sqlite:///nowhere/at/all.db"}
    return Place(tmp_path, where, folder / "jobs.db", "cli")


def test_a_channel_is_added_subscribed_listed_told_and_removed(place: Place) -> None:
    made = place.answer("notify", "channel", "ops", "https://hooks.example/s3cret")
    assert made["secret"].startswith("whsec_")
    wishes = ("--label", "team=blue", "--late-after", "10m", "--text", "$kind")
    [wish] = place.answer("notify", "subscribe", "ops", "dead", "cancelled", "--kind", "mail", *wishes)
    assert (sorted(wish["events"]), wish["kind"], wish["label"]) == (["cancelled", "dead"], "mail", ["team", "blue"])
    assert place.answer("notify", "subscriptions") == [wish]
    assert (wish["channel_id"], wish["late_after"]) == (made["channel"]["id"], "PT600S")
    listed = place.run("notify", "channels")
    assert "https://hooks.example/…" in listed.stdout
    assert "s3cret" not in listed.stdout + place.run("notify", "subscriptions").stdout
    assert place.answer("notify", "log") == []
    job = place.run("submit", "--label", "team=blue", "--task", "mail", "--args", "{}").stdout.strip()
    assert place.run("job", "cancel", job).returncode == 0
    place.prepare()
    [sent] = place.answer("notify", "log", "--state", "sent")
    assert (sent["event"], sent["answer"], len(sent["attempts"])) == ("cancelled", "answered 204", 1)
    [again] = place.answer("notify", "resend", sent["id"])
    assert (again["state"], again["key"]) == ("pending", sent["key"])
    assert place.answer("notify", "enable", "ops") == place.answer("notify", "channels")
    turned = place.answer("notify", "rotate", "ops", "--keep", "2h")
    assert turned["channel"] == made["channel"]
    assert turned["secret"] != made["secret"]
    assert place.run("notify", "unsubscribe", wish["id"]).returncode == 0
    assert place.run("notify", "remove", "ops").stdout == "ops is removed\n"
    assert place.answer("notify", "channels") == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what apprise imports
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("channel", "ops", "no url"), "tide: address: must be a URL"),
        (("channel", "ops", "https://user:hunter2@host"), "tide: address: must not hold a user"),
        (("channel", "ops", "slak://hunter2"), "tide: address: the address is none that a service knows (slak)"),
        (("channel", "ops", "file:///etc/x"), "tide: address: file is not offered: it belongs to the machine"),
        (("channel", "ops", "json://127.0.0.1/x"), "tide: address: json is not offered: use a webhook"),
        (("test", "ops"), "tide: no channel ops"),
        (("test", "ops", "--wait", "soon"), "tide: wait: "),
        (("subscribe", "ops", "exploded"), "tide: events: must be among"),
        (("subscribe", "ops", "dead"), "tide: no channel ops"),
        (("subscribe", "ops", "dead", "--text", "$x"), "tide: text: must name only"),
        (("subscribe", "ops", "dead", "--label", "blue"), "tide: label: must be name=value"),
        (("remove", "ops"), "tide: no channel ops"),
        (("rotate", "ops"), "tide: no channel ops"),
        (("rotate", "ops", "--keep", "soon"), "tide: keep: "),
        (("resend", "x"), "tide: delivery: must be an id"),
        (("resend", "01a1e32c-9236-70a0-8007-cb2475315829"), "tide: no delivery 01a1e32c"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(place: Place, words: tuple[str, ...], told: str) -> None:
    done = place.run("notify", *words)
    assert done.returncode != 0
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr


def test_a_test_message_that_nobody_sends_is_told_so_and_is_in_the_log(place: Place) -> None:
    place.answer("notify", "channel", "ops", "https://hooks.example/x")
    done = place.run("notify", "test", "ops", "--wait", "0s")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("tide: nobody has tried it for 0s: `tide up`, a server or a worker must run")
    place.prepare()
    [sent] = place.answer("notify", "log")
    assert (sent["event"], sent["state"], sent["answer"]) == ("test", "sent", "answered 204")


@pytest.mark.slow
async def test_a_test_message_says_how_it_was_answered(tmp_path: Path) -> None:
    async def run(*words: str) -> tuple[int | None, str]:
        command = (sys.executable, "-m", "tidewheel", "notify", *words)
        process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=PIPE, stderr=STDOUT)
        told, _ = await process.communicate()
        return process.returncode, told.decode()

    async with receiving() as receiver:
        with running(tmp_path, "up", "up", "--slots", "1", "--port", "0", "--notify-private", "127.0.0.0/8"):
            assert (await run("channel", "ops", receiver.address))[0] == 0
            code, told = await run("test", "ops")
            assert (code, receiver.got[0].headers["webhook-id"].partition(".")[0]) == (0, "test"), told
            assert {"sent", "200"} <= set(told.split())
            receiver.answer = lambda _: 503
            code, told = await run("test", "ops")
            assert (code, told.splitlines()[-1]) == (1, "tide: ops did not accept the test message: 503")
            assert len(receiver.got) == 2


def test_an_alert_is_listed_acknowledged_and_silenced(place: Place) -> None:
    assert place.answer("alert", "list") == []
    place.prepare(Finding(Rule.QUEUE_AGE, "default", "it waits"))
    [alert] = place.answer("alert", "list")
    assert (alert["rule"], alert["told"]) == ("queue.age", "it waits")
    [known] = place.answer("alert", "ack", alert["id"])
    assert known["acknowledged_by"].startswith(place.me)
    [window] = place.answer("alert", "silence", "2h", "queue.age", "--reason", "moving")
    assert window["author"].startswith(place.me)
    assert [one["id"] for one in place.answer("alert", "windows")] == [window["id"]]
    assert place.run("alert", "unsilence", window["id"]).returncode == 0
    assert place.run("alert", "silence", "2h", "x").stderr.startswith("tide: rules: must be among")
    assert place.run("alert", "silence", "99999w").stderr.startswith("tide: lasts: must be between")


@pytest.mark.parametrize("command", ["up", "server", "worker"])
def test_a_bound_that_is_none_is_told_before_anything_starts(tmp_path: Path, command: str) -> None:
    done = tide(tmp_path, command, "--alert", "queue_age=20m", "--alert", "age=1m")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tide: alert: must be one of schedule_late, queue_age,")
    assert done.stderr.count("\n") == 1


def test_a_key_of_one_tenant_has_channels_of_its_own(served: tuple[Path, str, str], tmp_path: Path) -> None:  # noqa: F811 - a fixture
    folder, url, _ = served
    key = tide(folder, "key", "create", "ada", "--role", "operator", "--tenant", "ada").stdout.strip()
    ada = Place(tmp_path, {"TIDE_URL": url, "TIDE_KEY": key}, folder / "jobs.db", "ada")
    assert ada.answer("notify", "channel", "hers", "https://hooks.example/x")["channel"]["tenant"] == "ada"
    [wish] = ada.answer("notify", "subscribe", "hers", "dead")
    assert wish["tenant"] == "ada"
    wrong = ada.run("notify", "channels", "--tenant", "bob")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (1, "", 1)
    assert ada.run("notify", "remove", "hers").stdout == "hers is removed\n"
    assert "all tenants" in ada.run("alert", "windows").stderr

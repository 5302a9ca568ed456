"""`tide notify` and `tide alert`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import tide
from tidewheel.model.alert import Finding, Rule
from tidewheel.store.sqlite import open_store


def answer(folder: Path, *words: str) -> Any:
    done = tide(folder, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_channel_is_added_subscribed_listed_and_removed(tmp_path: Path) -> None:
    made = answer(tmp_path, "notify", "channel", "ops", "https://hooks.example/s3cret")
    assert made["secret"].startswith("whsec_")
    [wish] = answer(tmp_path, "notify", "subscribe", "ops", "dead", "missed", "--kind", "mail", "--label", "team=blue")
    assert (sorted(wish["events"]), wish["kind"], wish["label"]) == (["dead", "missed"], "mail", ["team", "blue"])
    listed = tide(tmp_path, "notify", "channels")
    assert "https://hooks.example/…" in listed.stdout
    assert "s3cret" not in listed.stdout + tide(tmp_path, "notify", "subscriptions").stdout
    assert answer(tmp_path, "notify", "log") == []
    assert tide(tmp_path, "notify", "unsubscribe", wish["id"]).returncode == 0
    assert tide(tmp_path, "notify", "remove", "ops").stdout == "ops is removed\n"
    assert answer(tmp_path, "notify", "channels") == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("channel", "ops", "no url"), "tide: address: must be a URL"),
        (("channel", "ops", "https://user:hunter2@host"), "tide: address: must not hold a user"),
        (("subscribe", "ops", "exploded"), "tide: events: must be among"),
        (("subscribe", "ops", "dead"), "tide: no channel ops"),
        (("subscribe", "ops", "dead", "--text", "$x"), "tide: text: must name only"),
        (("subscribe", "ops", "dead", "--label", "blue"), "tide: label: must be name=value"),
        (("resend", "x"), "tide: delivery: must be an id"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = tide(tmp_path, "notify", *words)
    assert done.returncode != 0
    assert done.stderr.startswith(told)
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr


def test_an_alert_is_listed_acknowledged_and_silenced(tmp_path: Path) -> None:
    assert answer(tmp_path, "alert", "list") == []

    async def fire() -> None:
        store = await open_store(tmp_path / "jobs.db")
        await store.keep_alerts([Finding(Rule.QUEUE_AGE, "default", "it waits")])
        await store.close()

    asyncio.run(fire())
    [alert] = answer(tmp_path, "alert", "list")
    assert (alert["rule"], alert["told"]) == ("queue.age", "it waits")
    [known] = answer(tmp_path, "alert", "ack", alert["id"])
    assert known["acknowledged_by"].startswith("cli:")
    [window] = answer(tmp_path, "alert", "silence", "2h", "queue.age", "--reason", "moving")
    assert [one["id"] for one in answer(tmp_path, "alert", "windows")] == [window["id"]]
    assert tide(tmp_path, "alert", "unsilence", window["id"]).returncode == 0
    assert tide(tmp_path, "alert", "silence", "2h", "x").stderr.startswith("tide: rules: must be among")

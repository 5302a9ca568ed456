"""`tide gate`, `tide limit`, `tide queue` and `tide workers`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import a_worker
from tests.cli.terminal import tide
from tidewheel.store.sqlite import open_store


def answer(folder: Path, *words: str) -> Any:
    done = tide(folder, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_gates_are_closed_listed_and_opened(tmp_path: Path) -> None:
    closed = answer(tmp_path, "gate", "close", "--kind", "mail", "--reason", "server is down", "--lasts", "1h")
    assert (closed["mode"], closed["kind"], closed["author"][:4]) == ("hold", "mail", "cli:")
    slow = answer(tmp_path, "gate", "close", "--queue", "bulk", "--mode", "slow", "--rate", "60/m")
    assert slow["rate"] == 1.0
    assert [gate["id"] for gate in answer(tmp_path, "gate", "list")] == [closed["id"], slow["id"]]
    assert tide(tmp_path, "gate", "open", closed["id"]).stdout == f"{closed['id']} is open\n"
    assert tide(tmp_path, "gate", "open", "--queue", "bulk").stdout == f"{slow['id']} is open\n"
    assert answer(tmp_path, "gate", "list") == []


def test_limits_and_rules_are_set_listed_and_removed(tmp_path: Path) -> None:
    [made] = answer(tmp_path, "limit", "set", "account=7", "--most", "2", "--rate", "10/s", "--burst", "5")
    assert (made["most"], made["rate"]) == (2, {"starts": 10, "seconds": 1, "burst": 5})
    answer(tmp_path, "limit", "set", "account", "--most", "1", "--rule")
    assert [limit["key"] for limit in answer(tmp_path, "limit", "list")] == ["account=7"]
    assert [rule["name"] for rule in answer(tmp_path, "limit", "list", "--rules")] == ["account"]
    [capped] = answer(tmp_path, "limit", "set", "cap:mail", "--waiting", "5", "--overflow", "replace", "--rule")
    assert (capped["waiting"], capped["overflow"], capped["by_hand"]) == (5, "replace", True)
    assert tide(tmp_path, "limit", "remove", "cap:mail", "--rule").returncode == 0
    wrong = tide(tmp_path, "limit", "remove", "acount=7")
    assert (wrong.returncode, wrong.stderr) == (1, "tide: no limit acount=7; did you mean account=7?\n")
    assert tide(tmp_path, "limit", "remove", "account=7").stdout == "account=7 is removed\n"
    assert tide(tmp_path, "limit", "remove", "account", "--rule").returncode == 0
    assert answer(tmp_path, "limit", "list", "--rules") == []


def test_queues_are_listed_with_what_waits_in_them(tmp_path: Path) -> None:
    tide(tmp_path, "submit", "--queue", "mail", "--priority", "high", "--", "ls")
    assert "counted long ago" in tide(tmp_path, "queue", "list").stderr
    tide(tmp_path, "keeper", "run-once", "census")
    tide(tmp_path, "queue", "cap", "mail", "10", "--overflow", "drop_oldest")
    listed = tide(tmp_path, "queue", "list")
    assert listed.stdout.splitlines()[1].split() == ["mail", "1", "0", "0", "0", "0", "0", "10"]
    assert listed.stderr == ""
    assert tide(tmp_path, "queue", "uncap", "mial").stderr == "tide: no cap on queue mial; did you mean mail?\n"
    assert tide(tmp_path, "queue", "uncap", "mail").returncode == 0


def test_workers_are_listed(tmp_path: Path) -> None:
    async def come_and_go() -> None:
        store = await open_store(tmp_path / "jobs.db")
        await store.register(a_worker(name="web-1"))
        await store.deregister((await store.register(a_worker(name="web-2"))).id)
        await store.close()

    asyncio.run(come_and_go())
    assert [worker["name"] for worker in answer(tmp_path, "workers")] == ["web-1"]
    assert [worker["name"] for worker in answer(tmp_path, "workers", "--all")] == ["web-2", "web-1"]


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("gate", "close"), 2, "gate: must name a kind, a queue or a tenant"),
        (
            ("gate", "close", "--kind", "a", "--mode", "hodl"),
            2,
            "mode: must be one of hold, drop, slow, not 'hodl'; did",
        ),
        (("gate", "close", "--kind", "a", "--mode", "slow"), 2, "rate: must be given for a slow gate"),
        (("gate", "close", "--kind", "a", "--lasts", "long"), 2, "lasts: must be a duration"),
        (("gate", "open"), 2, "gate: name a gate by its id"),
        (("gate", "open", "x"), 2, "gate: must be an id"),
        (("gate", "open", "--kind", "a"), 1, "no closed gate on just these"),
        (("limit", "set", "k", "--most", "99999999999999999999"), 2, "most: must be between 1 and 2147483647"),
        (("limit", "set", "k"), 2, "most: must be given, or a rate"),
        (("limit", "set", "k", "--burst", "3"), 2, "burst: belongs to a rate"),
        (("limit", "set", "k", "--rate", "fast"), 2, "rate: must be a number of starts per"),
        (("limit", "set", "cap:k", "--waiting", "3"), 2, "waiting: is for rules: add --rule"),
        (("limit", "set", "k", "--waiting", "3", "--rule"), 2, "name: must begin with cap:"),
        (("queue", "cap", "q", "3", "--overflow", "spill"), 2, "overflow: must be one of reject"),
        (("queue", "cap", "q", "many"), 2, "invalid value for 'MOST'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, words: tuple[str, ...], code: int, why: str) -> None:
    wrong = tide(tmp_path, *words)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (code, "", 1), wrong.stderr
    assert wrong.stderr.startswith(f"tide: {why}"), wrong.stderr

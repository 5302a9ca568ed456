"""`tide key` and `tide tenant`, as someone at the machine uses them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import tide
from tidewheel.model.api_key import flaw_of


def answer(folder: Path, *words: str, **environment: str) -> Any:
    done = tide(folder, *words, "-o", "json", **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_key_is_shown_once_and_then_only_by_its_prefix(tmp_path: Path) -> None:
    made = tide(tmp_path, "key", "create", "ci", "--role", "submitter", "--tenant", "ada", "--expires", "90d")
    text = made.stdout.strip()
    assert (made.returncode, flaw_of(text)) == (0, None)
    assert "shown once" in made.stderr
    assert text not in made.stderr
    listed = tide(tmp_path, "key", "list").stdout
    assert text not in listed
    assert text[5:13] in listed
    assert listed.splitlines()[0].startswith("prefix    name  role       tenant  created")
    assert "submitter  ada" in listed
    (key,) = answer(tmp_path, "key", "list")
    assert (key["prefix"], key["name"], key["created_by"][:4]) == (text[5:13], "ci", "cli:")
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("jobs.db*"))
    assert text[14:].encode() not in stored


def test_programs_read_json(tmp_path: Path) -> None:
    made = answer(tmp_path, "key", "create", "robot", "--role", "worker", "--rate", "5", "--burst", "9")
    assert flaw_of(made["key"]) is None
    assert (made["role"], made["rate"], made["burst"], made["tenant"]) == ("worker", 5.0, 9, None)
    revoked = answer(tmp_path, "key", "revoke", made["prefix"])
    assert revoked["revoked_at"]
    assert answer(tmp_path, "key", "list", "--tenant", "ada") == []


def test_a_key_is_revoked_by_its_prefix(tmp_path: Path) -> None:
    made = answer(tmp_path, "key", "create", "k", "--role", "admin")
    done = tide(tmp_path, "key", "revoke", f"tide_{made['prefix']}")
    assert done.stdout == f"{made['prefix']} (k) is revoked\n"
    assert tide(tmp_path, "key", "revoke", made["prefix"]).returncode == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("key", "create", "k", "--role", "king"), "role: must be one of admin, operator, submitter, viewer, worker"),
        (("key", "create", "x" * 201, "--role", "viewer"), "name: must have at most 200 characters"),
        (("key", "create", "k", "--role", "viewer", "--tenant", "a b"), "tenant: must consist of"),
        (("key", "create", "k", "--role", "viewer", "--expires", "soon"), "expires: must be a duration"),
        (("key", "create", "k", "--role", "viewer", "--expires", "0s"), "lifetime: must be between 1s"),
        (("key", "create", "k", "--role", "viewer", "--rate", "-1"), "rate: must be more than 0"),
        (("key", "revoke", "abcd2345"), "no key abcd2345"),
        (("key", "revoke", "x"), "key: must be named by its prefix"),
        (("tenant", "set", "a b"), "name: must consist of"),
        (("tenant", "set", "ada", "--weight", "0"), "weight: must be more than 0"),
        (("tenant", "set", "ada", "--max-queued", "many"), "max_queued: must be a number or none"),
        (("tenant", "set", "ada", "--max-payload", "99999999"), "max_payload: must be between"),
        (("tenant", "set", "ada", "--keep-logs", "1s"), "keep_logs: must be between 1h and"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    done = tide(tmp_path, *words)
    assert (done.returncode, done.stdout) == (1 if why.startswith("no ") else 2, "")
    assert done.stderr.startswith(f"tide: {why}")
    assert len(done.stderr.splitlines()) == 1


def test_a_whole_key_given_by_mistake_is_not_repeated(tmp_path: Path) -> None:
    text = answer(tmp_path, "key", "create", "k", "--role", "viewer")["key"]
    done = tide(tmp_path, "key", "revoke", text)
    assert done.returncode == 2
    assert text not in done.stderr


def test_tenants_keep_what_is_not_named(tmp_path: Path) -> None:
    assert answer(tmp_path, "tenant", "list") == []
    tide(tmp_path, "tenant", "set", "ada", "--weight", "2.5", "--max-queued", "100")
    tide(tmp_path, "tenant", "set", "ada", "--max-payload", "1000")
    assert answer(tmp_path, "tenant", "list") == [
        {"name": "ada", "weight": 2.5, "max_queued": 100, "max_payload": 1000, "keep_logs": None}
    ]
    (changed,) = answer(tmp_path, "tenant", "set", "ada", "--keep-logs", "90d")
    assert changed["keep_logs"] == "P90D"
    (changed,) = answer(tmp_path, "tenant", "set", "ada", "--max-queued", "none")
    assert changed["max_queued"] is None
    listed = tide(tmp_path, "tenant", "list").stdout.splitlines()
    assert [line.split() for line in listed] == [
        ["name", "weight", "max", "queued", "max", "payload", "logs"],
        ["ada", "2.5", "-", "1000", "90d"],
    ]


def test_on_postgresql_it_is_the_same(tmp_path: Path, postgres_database: str) -> None:
    made = answer(tmp_path, "key", "create", "k", "--role", "viewer", TIDE_DATABASE=postgres_database)
    (key,) = answer(tmp_path, "key", "list", TIDE_DATABASE=postgres_database)
    assert key["id"] == made["id"]
    answer(tmp_path, "tenant", "set", "ada", TIDE_DATABASE=postgres_database)


def test_what_was_changed_is_shown_with_who_did_it(tmp_path: Path) -> None:
    made = answer(tmp_path, "key", "create", "ci", "--role", "viewer", "--tenant", "ada")
    answer(tmp_path, "tenant", "set", "bob", "--weight", "2")
    answer(tmp_path, "key", "revoke", made["prefix"])
    entries = answer(tmp_path, "audit")
    assert [entry["action"] for entry in entries] == ["keys.write", "tenants.write", "keys.write"]
    assert {entry["actor"][:4] for entry in entries} == {"cli:"}
    assert made["key"] not in json.dumps(entries)
    assert len(answer(tmp_path, "audit", "--last", "1")) == 1
    assert [entry["subject"] for entry in answer(tmp_path, "audit", "--tenant", "bob")] == ["bob"]
    assert len(answer(tmp_path, "audit", "--action", "keys.write", "--subject", made["id"])) == 2
    listed = tide(tmp_path, "audit").stdout.splitlines()
    assert listed[0].split() == ["at", "actor", "tenant", "action", "subject", "detail"]
    assert '{"did":"revoke"' in listed[1]
    assert tide(tmp_path, "audit", "--last", "0").stderr == "tide: last: must be at least 1, not 0\n"


def test_a_folder_of_secrets_that_is_not_there_is_told_before_anything_starts(tmp_path: Path) -> None:
    for command in ("worker", "up"):
        done = tide(tmp_path, command, "--secrets", "nowhere")
        assert (done.returncode, done.stderr) == (2, "tide: secrets: there is no folder nowhere\n")

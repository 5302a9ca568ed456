"""Commands that talk to a server in place of the database."""

import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import tide
from tests.worker.running import Worker, until
from tidewheel.cli import server as cli_server
from tidewheel.cli import up as cli_up
from tidewheel.model.retention import parse_upkeep
from tidewheel.worker.plan import WorkerPlan


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, str]]:
    """A server that asks for keys: its folder, its address and a key."""
    folder = tmp_path_factory.mktemp("served")
    tide(folder, "db", "upgrade")
    key = tide(folder, "key", "create", "cli", "--role", "admin").stdout.strip()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["server", "--port", str(port), "--database", f"sqlite:///{folder}/jobs.db", "--no-keeper"]
    server = Worker(words, folder / "log", cwd=folder)
    try:
        until(lambda: "answers at" in server.said, "the server to begin")
        yield folder, f"http://127.0.0.1:{port}", key
    finally:
        server.kill()


def test_a_database_that_is_typed_comes_before_a_server_that_the_environment_names(tmp_path: Path) -> None:
    nobody = {"TIDE_URL": "http://127.0.0.1:1"}
    done = tide(tmp_path, "submit", "--database", "sqlite:///typed.db", "--", "ls", **nobody)
    assert (done.returncode, (tmp_path / "typed.db").exists()) == (0, True), done.stderr
    assert tide(tmp_path, "submit", "--", "ls", **nobody).returncode == 3
    both = ("--database", "sqlite:///typed.db", "--url", "http://127.0.0.1:1")
    assert tide(tmp_path, "submit", *both, "--", "ls").returncode == 3


def test_jobs_are_handed_over_and_looked_at_through_a_server(served: tuple[Path, str, str]) -> None:
    folder, url, key = served
    place = {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_DATABASE": "sqlite:///nowhere/at/all.db"}
    job = tide(folder, "submit", "--label", "a=b", "--", "ls", **place).stdout.strip()
    listed = json.loads(tide(folder, "job", "list", "--label", "a=b", "-o", "json", **place).stdout)
    assert [each["id"] for each in listed] == [job]
    assert tide(folder, "job", "show", job).returncode == 0, "it is in the database itself"
    assert "queued" in tide(folder, "job", "show", job, **place).stdout
    assert tide(folder, "job", "logs", job, **place).returncode == 0
    assert json.loads(tide(folder, "job", "cancel", job, "-o", "json", **place).stdout)[0]["state"] == "cancelled"
    closed = tide(folder, "gate", "close", "--kind", "mail", **place)
    assert closed.returncode == 0, closed.stderr
    assert tide(folder, "gate", "open", "--kind", "mail", **place).returncode == 0
    assert tide(folder, "workers", **place).returncode == 0
    empty = tide(folder, "job", "list", "--queue", "nothing-like-it", **place)
    assert (empty.returncode, empty.stderr) == (0, "")
    found = json.loads(tide(folder, "doctor", "-o", "json", **place).stdout)
    assert {"server": "good"}.items() <= {each["what"]: each["health"] for each in found}.items()


def test_caps_and_rules_are_set_through_a_server(served: tuple[Path, str, str]) -> None:
    folder, url, key = served
    place = {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_OUTPUT": "json"}
    assert tide(folder, "queue", "cap", "small", "1", **place).returncode == 0
    tide(folder, "submit", "--queue", "small", "--", "ls", **place)
    full = tide(folder, "submit", "--queue", "small", "--", "ls", **place)
    assert (full.returncode, full.stderr) == (1, "tide: queue 'small' is full: at most 1 jobs may wait in it\n")
    lines = json.loads(tide(folder, "queue", "list", **place).stdout)
    assert [line["most"] for line in lines if line["queue"] == "small"] == [1]
    assert tide(folder, "queue", "uncap", "small", **place).returncode == 0
    assert tide(folder, "limit", "set", "cap:mail", "--waiting", "5", "--rule", **place).returncode == 0
    rules = json.loads(tide(folder, "limit", "list", "--rules", **place).stdout)
    assert [(rule["name"], rule["waiting"], rule["by_hand"]) for rule in rules] == [("cap:mail", 5, True)]
    assert tide(folder, "limit", "remove", "cap:mail", "--rule", **place).returncode == 0


def test_what_a_server_does_not_offer_is_told_in_one_line(served: tuple[Path, str, str]) -> None:
    folder, url, key = served
    wrong = tide(folder, "keeper", "run-once", "census", TIDE_URL=url, TIDE_KEY=key)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "is not offered over HTTP" in wrong.stderr


def test_a_wrong_key_is_told_in_one_line(served: tuple[Path, str, str]) -> None:
    folder, url, key = served
    for words in ({}, {"TIDE_KEY": "tide_nonsense"}, {"TIDE_KEY": key[:-1] + ("a" if key[-1] != "a" else "b")}):
        wrong = tide(folder, "job", "list", TIDE_URL=url, **words)
        assert (wrong.returncode, wrong.stdout, wrong.stderr) == (
            1,
            "",
            "tide: a valid key is needed: put one into TIDE_KEY (`tide key create` makes them)\n",
        )


def test_a_server_that_cannot_be_reached_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    wrong = tide(tmp_path, "job", "list", "--url", f"http://127.0.0.1:{port}")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (3, "", 1)
    assert f"127.0.0.1:{port}" in wrong.stderr
    wrong = tide(tmp_path, "job", "list", "--url", "tide.example.com")
    assert (wrong.returncode, wrong.stderr.startswith("tide: url: must be the http:// or https:// address")) == (
        2,
        True,
    )
    assert tide(tmp_path, "doctor", "--url", f"http://127.0.0.1:{port}").returncode == 1


def test_a_profile_names_a_place_and_variables_come_before_it(served: tuple[Path, str, str], tmp_path: Path) -> None:
    folder, url, key = served
    (tmp_path / "tidewheel.toml").write_text(
        f'[profile.production]\nurl = "{url}"\nkey = "{key}"\noutput = "json"\n[profile.here]\ndatabase = "sqlite:///x.db"\n'
    )
    job = tide(folder, "submit", "--", "ls").stdout.strip()
    listed = tide(tmp_path, "--profile", "production", "job", "list")
    assert job in {each["id"] for each in json.loads(listed.stdout)}, listed.stderr
    assert tide(tmp_path, "job", "list", TIDE_PROFILE="production", TIDE_OUTPUT="table").stdout.startswith("id ")
    wrong = tide(tmp_path, "--profile", "producton", "job", "list")
    assert (wrong.returncode, "did you mean production?" in wrong.stderr) == (2, True)
    (tmp_path / "tidewheel.toml").write_text('[profile.x]\nulr = "https://x"\n')
    wrong = tide(tmp_path, "job", "list")
    assert (wrong.returncode, "profile.x has no 'ulr'; did you mean url?" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("command", [cli_server.server, cli_up.up])
def test_a_server_keeps_what_it_is_told_to_keep(
    command: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[WorkerPlan] = []
    for module in (cli_server, cli_up):
        monkeypatch.setattr(module, "run_worker", lambda plan, *_, **__: plans.append(plan))
        monkeypatch.setattr(module, "write_log", lambda *_, **__: None)
    command(database=f"sqlite:///{tmp_path}/jobs.db", port=0, keep=["dead=90d"], max_age="3d", behind_tls=True)
    [plan] = plans
    assert plan.upkeep == parse_upkeep(["dead=90d"], "3d", [], [])
    assert plan.serve is not None
    assert plan.serve.behind_tls

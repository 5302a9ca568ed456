"""The files for deploying are read as their programs read them, and every command in them is one that exists."""

import configparser
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tidewheel.cli.lazy import loaded
from tidewheel.cli.main import commands as all_commands
from tidewheel.settings import SETTINGS, read_file

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
KEYS = {
    "Unit": {"Description", "After", "Wants", "Requires"},
    "Service": {
        "Type",
        "RemainAfterExit",
        "User",
        "EnvironmentFile",
        "ExecStart",
        "ExecReload",
        "KillMode",
        "KillSignal",
        "TimeoutStopSec",
        "Restart",
        "RestartSec",
        "LimitNOFILE",
        "Delegate",
        "NoNewPrivileges",
        "ProtectSystem",
        "ProtectHome",
        "PrivateTmp",
        "StateDirectory",
        "WorkingDirectory",
    },
    "Install": {"WantedBy"},
}


def unit(path: Path) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=True, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(path.read_text())
    return found


def check_command(words: list[str]) -> None:
    """Refuse words that `tide` would not understand."""
    command: Any = all_commands()
    rest = iter(words)
    for word in rest:
        options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
        if word.startswith("-"):
            assert word in options, f"{word} in {words}"
            if not options[word].is_flag:
                assert next(rest, None) is not None, words
        elif hasattr(command, "commands"):
            assert word in command.commands, f"{word} in {words}"
            command = loaded(command.commands[word])
        else:
            assert any(one.param_type_name == "argument" for one in command.params), f"{word} in {words}"
    assert not hasattr(command, "commands"), f"{words} is no whole command"


def commands() -> Iterator[list[str]]:
    for path in UNITS:
        program, *words = shlex.split(unit(path)["Service"]["ExecStart"])
        assert program == "/opt/tidewheel/bin/tide"
        yield words
    yield from (service["command"] for service in COMPOSE["services"].values() if "command" in service)
    found = re.search(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    yield yaml.safe_load(found[1])
    text = (ROOT / "docs/how-to/deploy.md").read_text()
    for line in re.findall(r"^(?:\$ )?(?:sudo -u tidewheel )?(?:/opt/tidewheel/bin/)?tide (.*)$", text, re.MULTILINE):
        yield shlex.split(line, comments=True)


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_every_command_is_one_that_exists(words: list[str]) -> None:
    check_command(words)


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    for words in (["serve"], ["server", "--prot", "1"], ["db"], ["server", "--port"]):
        with pytest.raises(AssertionError):
            check_command(words)


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_have_only_keys_that_mean_something_and_drain_before_they_are_killed(path: Path) -> None:
    found = unit(path)

    assert {(section, key) for section in found.sections() for key in found[section]} <= {
        (section, key) for section, keys in KEYS.items() for key in keys
    }
    for name in (*found["Unit"]["After"].split(), *found["Unit"].get("Requires", "").split()):
        assert not name.startswith("tidewheel") or (path.parent / name).exists()
    service = found["Service"]
    if service["Type"] != "oneshot":
        drain = re.search(r"--drain (\d+)s", service["ExecStart"])
        assert int(service["TimeoutStopSec"]) > (int(drain[1]) if drain else 10)
        # The supervisor alone is told; if all were, the children would not be drained.
        assert (service["KillMode"], service["KillSignal"], service["Restart"]) == ("mixed", "SIGTERM", "always")


def test_compose_refers_to_nothing_that_is_not_there() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"]), name
        volumes = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert volumes <= set(COMPOSE["volumes"]), name
        assert ("image" in service) != ("build" in service), name
        for variable in service.get("environment", {}):
            if variable.startswith("TIDE_"):
                assert variable.removesuffix("_FILE") in {one.variable for one in SETTINGS.values()}
    assert (DEPLOY / services["server"]["build"]["context"] / services["server"]["build"]["dockerfile"]).exists()
    for service in services.values():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), "nothing is published to the world"


class Answering(BaseHTTPRequestHandler):
    """A server that is ready or is not."""

    status = HTTPStatus.OK

    def do_GET(self) -> None:
        self.send_response(self.status if self.path == "/readyz" else HTTPStatus.NOT_FOUND)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("status", [HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE, None], ids=str)
def test_the_health_check_of_compose_tells_a_server_that_is_ready_from_others(status: HTTPStatus | None) -> None:
    _, program, *words = COMPOSE["services"]["server"]["healthcheck"]["test"]
    assert program == "python3"
    handler = type("Handler", (Answering,), {"status": status})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asked = words[-1].replace("8433", str(server.server_port))
        assert asked != words[-1]
        if status is None:
            server.shutdown()
            server.server_close()
        done = subprocess.run([sys.executable, *words[:-1], asked], check=False, capture_output=True, timeout=60)
        server.shutdown()

    assert (done.returncode == 0) == (status is HTTPStatus.OK), done.stderr


def test_the_image_copies_what_is_there_and_installs_extras_that_exist() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE):
        assert [name for name in line.split()[:-1] if not (ROOT / name).exists()] == []
    found = re.search(r"'\.\[(.*)\]'", text)
    assert found is not None
    assert set(found[1].split(",")) <= set(extras)
    assert re.search(r"^USER tidewheel$", text, re.MULTILINE), "not as root"


def test_the_file_of_settings_is_one() -> None:
    assert read_file(DEPLOY / "tidewheel.toml")["port"] == 8433


def test_the_image_has_every_extra_and_the_page_says_so() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"dev"}
    (installed,) = re.findall(r"'\.\[([\w,]+)\]'", (DEPLOY / "Dockerfile").read_text())
    assert set(installed.split(",")) == extras
    page = (ROOT / "docs/how-to/deploy.md").read_text()
    (told,) = re.findall(r"The image has all extras of\s+Tidewheel: ([^.]+)\.", page)
    assert set(re.findall(r"`(\w+)`", told)) == extras

"""Settings as commands see them."""

import json
from pathlib import Path
from typing import Any

from tests.cli.terminal import tide
from tidewheel.cli.lazy import loaded
from tidewheel.cli.main import commands as root
from tidewheel.settings import SETTINGS

ROOT = root()


def commands(group: Any = ROOT, *before: str) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for name, lazy in group.commands.items():
        command = loaded(lazy)
        deeper = hasattr(command, "commands")
        found |= commands(command, *before, name) if deeper else {(*before, name): command}
    return found


def test_every_setting_is_an_option_of_its_commands_with_its_default_and_variable() -> None:
    for setting in (one for one in SETTINGS.values() if one.typed):
        having: list[tuple[str, ...]] = [("server",), ("worker",), ("up",)]
        if setting.commands is not None:
            having = [tuple(name.split()) for name in setting.commands]
        for name in having:
            [option] = [one for one in commands()[name].params if one.name == setting.name]
            assert (option.opts[0], option.envvar) == (setting.flag, setting.variable)
            assert option.default == setting.default or list(option.default or ()) == setting.default
            assert option.help == setting.help


def test_what_must_not_be_typed_is_no_option_of_any_command_and_never_shown(tmp_path: Path) -> None:
    assert [setting.name for setting in SETTINGS.values() if not setting.typed] == ["secrets_key"]
    assert not [
        name for name, command in commands().items() if any(one.name == "secrets_key" for one in command.params)
    ]
    (tmp_path / "tidewheel.toml").write_text('secrets_key = "hush from the file"\n')
    (tmp_path / "key").write_text("hush from its own file\n")
    for environment in ({"TIDE_SECRETS_KEY": "hush"}, {"TIDE_SECRETS_KEY_FILE": str(tmp_path / "key")}, {}):
        for form in ("table", "json"):
            shown = tide(tmp_path, "config", "show", "-o", form, **environment).stdout
            assert "***" in shown
            assert "hush" not in shown
    bad = tide(tmp_path, "secret", "list")
    assert (bad.returncode, "secrets_key: each key must be 32 bytes in base64" in bad.stderr) == (2, True)
    assert "hush" not in bad.stderr
    (tmp_path / "tidewheel.toml").write_text('secrets_key = ["hush"]\n')
    worse = tide(tmp_path, "secret", "list").stderr
    assert worse.endswith("tidewheel.toml: secrets_key must be text\n")


def test_every_option_of_the_long_running_commands_is_a_setting() -> None:
    for name in ("server", "worker", "up", "keeper run"):
        own = {option.name for option in commands()[tuple(name.split())].params} - {"help"}
        assert {setting for setting in own if setting not in SETTINGS} == set()


def test_a_file_is_used_and_shown_with_its_source(tmp_path: Path) -> None:
    (tmp_path / "tidewheel.toml").write_text('database = "sqlite:///by-file.db"\nport = 9\n')
    (tmp_path / "other.toml").write_text("port = 10\n")

    values = json.loads(tide(tmp_path, "config", "show", "-o", "json", TIDE_MAX_AGE="1d").stdout)
    assert values["port"] == {"value": 9, "source": str(tmp_path / "tidewheel.toml")}
    assert values["max_age"] == {"value": "1d", "source": "TIDE_MAX_AGE"}
    assert values["lease"] == {"value": "30s", "source": "default"}
    other = json.loads(tide(tmp_path, "--config", "other.toml", "config", "show", "-o", "json").stdout)
    assert other["port"] == {"value": 10, "source": "other.toml"}
    secret = tide(tmp_path, "config", "show", TIDE_DATABASE="postgresql://a:hush@b/c").stdout
    assert "postgresql://a:***@b/c" in secret
    assert "hush" not in secret


def test_commands_go_by_the_file_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "tidewheel.toml").write_text('database = "sqlite:///by-file.db"\nqueue = ["a", "b"]\n')
    (tmp_path / "url").write_text("sqlite:///by-secret.db")
    environment = {"TIDE_DATABASE": ""}  # empty is as if it were not there

    assert "by-file.db" in tide(tmp_path, "db", "upgrade", **environment).stdout
    assert "by-option.db" in tide(tmp_path, "db", "upgrade", "--database", "sqlite:///by-option.db").stdout
    assert "jobs.db" in tide(tmp_path, "db", "upgrade").stdout
    bad = tide(tmp_path, "--config", "none.toml", "db", "upgrade")
    assert (bad.returncode, bad.stderr) == (2, "tide: config: none.toml: No such file or directory\n")
    (tmp_path / "tidewheel.toml").write_text("databse = 1\n")
    worse = tide(tmp_path, "db", "check")
    assert "did you mean database?" in worse.stderr
    assert "Traceback" not in worse.stderr

"""Settings: where they come from, which comes first, and what is no setting."""

from pathlib import Path
from typing import Any

import pytest

from tidewheel.errors import Invalid
from tidewheel.settings import (
    SETTINGS,
    Value,
    check_variables,
    find_file,
    read_file,
    read_secret_files,
    resolve,
    shown,
    unknown_variables,
)


def said(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "tidewheel.toml"
    path.write_text(text)
    return read_file(path)


def test_a_variable_comes_before_the_file_and_the_file_before_the_default(tmp_path: Path) -> None:
    found = said(tmp_path, 'port = 1\nhost = "here"')
    values = {one.setting.name: (one.value, one.source) for one in resolve(found, tmp_path, {"TIDE_PORT": "2"})}

    assert values["port"] == ("2", "TIDE_PORT")
    assert values["host"] == ("here", str(tmp_path))
    assert values["lease"] == ("30s", "default")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("prot = 1", "'prot' is no setting; did you mean port?"),
        ("zzzzzz = 1", "'zzzzzz' is no setting"),
        ('port = "1"', "port must be a whole number, not '1'"),
        ("port = true", "port must be a whole number, not True"),
        ("keeper = 1", "keeper must be true or false, not 1"),
        ('queue = "a"', "queue must be a list of texts, not 'a'"),
        ("queue = [1]", "queue must be a list of texts, not [1]"),
        ("[server]\nport = 1", "'server' is no setting"),
        ("port = ", "Invalid value"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_name(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        said(tmp_path, text)
    assert why in refused.value.why
    assert "tidewheel.toml" in refused.value.why


def test_a_file_that_was_chosen_must_be_there_and_the_usual_one_need_not(tmp_path: Path) -> None:
    assert find_file(None, {}, tmp_path) is None
    (tmp_path / "tidewheel.toml").write_text("")
    assert find_file(None, {}, tmp_path) == tmp_path / "tidewheel.toml"
    assert find_file(None, {"TIDE_CONFIG": "/x"}, tmp_path) == Path("/x")
    assert find_file("/y", {"TIDE_CONFIG": "/x"}, tmp_path) == Path("/y")
    with pytest.raises(Invalid, match="No such file"):
        read_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://tide:secret@db/tide", "postgresql://tide:***@db/tide"),
        ("postgresql://tide@db/tide?password=secret", "postgresql://tide@db/tide?***"),
        ("postgresql://tide@db:5432/tide", "postgresql://tide@db:5432/tide"),
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("postgresql://[", "***"),
    ],
)
def test_passwords_are_masked(url: str, told: str) -> None:
    assert shown(Value(SETTINGS["database"], url, "")) == told


def test_a_secret_may_be_in_a_file_but_its_variable_comes_first(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://x\n")
    by_file = {"TIDE_DATABASE_FILE": str(tmp_path / "url")}

    assert read_secret_files(by_file) == {"TIDE_DATABASE": "postgresql://x"}
    assert read_secret_files(by_file | {"TIDE_DATABASE": "sqlite:///y"}) == {}
    with pytest.raises(Invalid, match="TIDE_DATABASE_FILE"):
        read_secret_files({"TIDE_DATABASE_FILE": str(tmp_path / "none")})


def test_variables_that_look_like_settings_and_are_none_are_found() -> None:
    ours = {"TIDE_PORT": "1", "TIDE_KEY": "k", "TIDE_DATABASE_FILE": "f", "TIDE_OUTPUT_DIR": "/tmp", "TIDE_EMPTY": ""}
    others = {"TIDE_SECRET_X": "1", "TIDE_SERVICE_HOST": "10.0.0.1", "TIDE_PORT_8433_TCP": "tcp://10.0.0.1", "PATH": ""}
    assert unknown_variables({"TIDE_PROT": "1", "TIDE_SHOES": "1", **ours, **others}) == ["TIDE_PROT", "TIDE_SHOES"]


@pytest.mark.parametrize(("name", "meant"), [("TIDE_PROT", "PORT"), ("TIDE_DATABSE", "DATABASE"), ("TIDE_KEYS", "KEY")])
def test_a_variable_that_must_be_a_slip_is_an_error(name: str, meant: str) -> None:
    with pytest.raises(Invalid, match=f"{name}: is no setting; did you mean TIDE_{meant}"):
        check_variables({name: "1"})
    check_variables({"TIDE_SHOES": "1", "TIDE_PICTURES": "1", "TIDE_LONG": "1"})

"""`tide secret`, on the database itself and at a server."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import SECRETS_KEY, Api, serving
from tests.cli.terminal import Done, tide, tide_given
from tidewheel.cli.secret import _given
from tidewheel.client import Client
from tidewheel.errors import Invalid

OTHER_KEY = base64.b64encode(b"2" * 32).decode()
TEXT = "correct horse"


def secret(folder: Path, *words: str, given: str = "", key: str = SECRETS_KEY) -> Done:
    return tide_given(folder, given.encode(), "secret", *words, TIDE_SECRETS_KEY=key)


def listed(folder: Path, *words: str) -> Any:
    return json.loads(secret(folder, "list", "-o", "json", *words).stdout)


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("jobs.db*"))


def test_a_secret_comes_by_stdin_or_a_file_and_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from a file\n")
    done = [
        secret(tmp_path, "set", "db", given=f"{TEXT}\n"),
        secret(tmp_path, "set", "db", given="another text"),
        secret(tmp_path, "set", "api", "--from-file", "file", "--tenant", "ada"),
        secret(tmp_path, "list"),
        tide(tmp_path, "audit"),
    ]
    assert [one.returncode for one in done] == [0] * 5
    assert [(one["name"], one["version"], one["changed_by"][:4]) for one in listed(tmp_path)] == [("db", 2, "cli:")]
    assert [one["name"] for one in listed(tmp_path, "--tenant", "ada")] == ["api"]
    said = "".join(one.stdout + one.stderr for one in done)
    for word in (TEXT, "another text", "from a file", SECRETS_KEY):
        assert word not in said
        assert word.encode() not in everything(tmp_path)
    assert secret(tmp_path, "rm", "db").stdout == "db is removed\n"
    gone = secret(tmp_path, "rm", "db")
    assert (gone.returncode, gone.stderr) == (1, "tide: no secret db\n")


@pytest.mark.parametrize(
    ("words", "given", "told"),
    [
        (["set", "Db"], "text", "name: must be named by up to 64 small letters, digits and _, beginning with a letter"),
        (["set", "db"], "abc\n", "value: has fewer than 4 characters, and could not be kept out of logs"),
        (["set", "db"], "x" * 70_000, "value: has more than 65536 bytes"),
        (["set", "db", "--from-file", "none"], "", "from-file: none: No such file or directory"),
        (["set", "db", "--from-file", "."], "", "from-file: .: Is a directory"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, words: list[str], given: str, told: str) -> None:
    done = secret(tmp_path, *words, given=given)
    assert (done.returncode, done.stderr) == (2, f"tide: {told}\n")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    done = tide_given(tmp_path, b"\xff\xfe\xfd\xfc", "secret", "set", "db", TIDE_SECRETS_KEY=SECRETS_KEY)
    assert (done.returncode, done.stderr) == (2, "tide: value: is no text in UTF-8\n")


def test_where_there_is_no_standard_input_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidewheel.cli.secret.sys.stdin", None)
    with pytest.raises(Invalid, match="the standard input, which is closed"):
        _given(None)
    (tmp_path / "file").write_text(TEXT)
    assert _given(str(tmp_path / "file")) == TEXT


def test_without_a_key_it_says_what_to_do(tmp_path: Path) -> None:
    done = tide_given(tmp_path, b"some text", "secret", "set", "db")
    why = "no key is configured for stored secrets: set TIDE_SECRETS_KEY or TIDE_SECRETS_KEY_FILE"
    assert (done.returncode, done.stderr) == (1, f"tide: {why}\n")


def test_keys_are_changed(tmp_path: Path) -> None:
    secret(tmp_path, "set", "db", given=TEXT)
    secret(tmp_path, "set", "db", "--tenant", "ada", given=TEXT)
    lost = secret(tmp_path, "rotate", key=OTHER_KEY)
    assert (lost.returncode, lost.stdout) == (1, "encrypted anew, by the first key: 0\n")
    assert lost.stderr == "tide: no key opens 2 of the secrets, which stay as they are: see `tide secret list`\n"
    both = secret(tmp_path, "rotate", "-o", "json", key=f"{OTHER_KEY} {SECRETS_KEY}")
    assert json.loads(both.stdout) == {"rotated": 2, "locked": 0}
    assert secret(tmp_path, "rotate", key=OTHER_KEY).stdout == "encrypted anew, by the first key: 0\n"


async def test_the_same_at_a_server_which_has_the_key(tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path}/jobs.db", tmp_path) as api:
        await _at_a_server(api, tmp_path)


async def _at_a_server(api: Api, folder: Path) -> None:
    def use() -> list[str]:
        url = {"TIDE_URL": api.address.url}
        said = tide_given(folder, TEXT.encode(), "secret", "set", "db", "--tenant", "ada", **url)
        assert said.returncode == 0, said.stderr
        assert json.loads(tide(folder, "secret", "rotate", "-o", "json", **url).stdout) == {"rotated": 0, "locked": 0}
        with Client(api.address.url, tenant="ada") as client:
            client.set_secret("more", TEXT)
            client.remove_secret("db")
            return [one.name for one in client.secrets()]

    assert await asyncio.to_thread(use) == ["more"]

"""What the pages about security say is what the program does."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.test_processes import tide
from tests.docs.test_examples import ROOT, programs, run
from tests.docs.test_sdk_examples import run as run_with
from tests.docs.test_sdk_examples import save
from tidewheel.model.access import MAY, Action, Role

HOW_TO = "docs/how-to/keys-and-tenants.md"
TIDE = str(Path(sys.executable).with_name("tide"))


def test_the_table_of_roles_is_the_one_in_the_code() -> None:
    text = (ROOT / "docs/explanation/security-model.md").read_text()
    rows = re.findall(r"^\| `([a-z]+\.[a-z]+)` \|(.*)\|$", text, re.MULTILINE)
    shown = {action: [cell.strip() == "yes" for cell in cells.split("|")] for action, cells in rows}
    columns = re.search(r"^\| action \|(.*)\|$", text, re.MULTILINE)
    assert columns is not None
    roles = [Role(name.strip()) for name in columns[1].split("|")]
    assert shown == {action.value: [action in MAY[role] for role in roles] for action in Action}


def test_the_commands_of_the_page_about_keys_do_what_it_says(tmp_path: Path) -> None:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / HOW_TO).read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    prefix = ""
    for line in lines:
        words = shlex.split(line.replace("abcd2345", prefix))
        assert words[0] == "tide"
        done = subprocess.run(
            [TIDE, *words[1:]],
            cwd=tmp_path,
            env={**os.environ, "TIDE_DATABASE": "sqlite:///shop.db"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        prefix = prefix or done.stdout[5:13]
    assert done.stdout.split()[-5:] == ["shop", "3", "-", "16384", "90d"]
    assert len(lines) == 8


@pytest.mark.slow
def test_the_commands_about_stored_secrets_do_what_the_page_says(tmp_path: Path) -> None:
    store, rotate = re.findall(r"```sh\n(.*?)```", (ROOT / HOW_TO).read_text(), re.DOTALL)
    (tmp_path / "stripe-key.txt").write_text("sk_live_12345678\n")
    (tmp_path / "password.txt").write_text("swordfish\n")
    take_away = "printf '%s\\n' \"$(head -1 secrets-key)\" > secrets-key; tide secret rotate\n"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", (store + rotate + take_away).replace("/etc/tidewheel/", "")],
        cwd=tmp_path,
        env={**os.environ, "TIDE_DATABASE": "sqlite:///shop.db", "PATH": f"{Path(TIDE).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *_, removed, rotated, again = done.stdout.splitlines()
    assert (removed, rotated[-3:], again[-3:]) == ("stripe_key is removed", ": 1", ": 0")
    assert "swordfish" not in done.stdout


@pytest.mark.slow
def test_the_program_about_keys_over_http_does_what_it_says(tmp_path: Path) -> None:
    give_out, *_ = save(tmp_path, HOW_TO)
    with tide(tmp_path, "server", "server", "--port", "0", "--auth", "required", "--no-keeper") as (server, client):
        [key] = re.findall(r"^tide_\S+$", server.said, re.MULTILINE)
        said = run_with(tmp_path, give_out, TIDE_URL=str(client.base_url), TIDE_KEY=key)
    assert said.splitlines() == ["201 shop", "200", "forbidden", "['keys.write', 'tenants.write', 'keys.write']"]


def test_the_programs_about_secrets_and_erasure_do_what_they_say(tmp_path: Path) -> None:
    (_, billing, forget) = programs(HOW_TO)
    (tmp_path / billing[0]).write_text(billing[1])
    database = ("--database", "sqlite:///billing.db")
    secrets = {"TIDE_SECRET_STRIPE_KEY": "sk_live_12345678", "TIDE_SECRET_DB_PASSWORD": "swordfish"}
    with subprocess.Popen(
        [TIDE, "up", "--app", "billing:app", *database], cwd=tmp_path, env={**os.environ, **secrets}
    ) as up:
        try:
            said = run(tmp_path, *billing).splitlines()
        finally:
            up.terminate()
            assert up.wait(timeout=60) == 0
    assert said == [
        "{'order': 7, 'key': {'$secret': 'stripe_key'}}",
        "order 7 was charged with a key of 16 characters ['charging with ***']",
        "succeeded ['dumping as ***']",
    ]
    assert run(tmp_path, *forget) == "billing.charge succeeded {} None\n"

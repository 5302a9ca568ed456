"""Where secrets come from, and what is said of those that do not come."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tidewheel.errors import NotFound, SecretsLocked
from tidewheel.model.secret import MAX_SECRET
from tidewheel.tasks.signals import Fatal
from tidewheel.worker.secrets import Secrets


def put(folder: Path, tenant: str, name: str, data: bytes) -> None:
    (folder / tenant).mkdir(exist_ok=True, parents=True)
    (folder / tenant / name).write_bytes(data)


async def why_not(secrets: Secrets, name: str, tenant: str = "default") -> str:
    with pytest.raises(Fatal) as refused:
        await secrets.fetch(tenant, [name])
    return str(refused.value)


async def test_the_environment_is_for_the_default_tenant_alone() -> None:
    secrets = Secrets({"TIDE_SECRET_DB": "hunter22", "PATH": "/bin", "TIDE_SECRETS": "x"})
    assert await secrets.fetch("default", ["db"]) == {"db": "hunter22"}
    assert (
        await why_not(secrets, "db", "ada")
        == "there is no secret 'db' for the tenant 'ada' at this worker, and none is stored"
    )
    assert "no secret 's'" in await why_not(secrets, "s")


async def test_a_folder_has_a_folder_for_each_tenant(tmp_path: Path) -> None:
    put(tmp_path, "ada", "db", b"of ada\n")
    put(tmp_path, "default", "db", b"of default\n\n")
    put(tmp_path, "a%2F..%2Fada", "db", b"of a path")
    secrets = Secrets({}, tmp_path)
    assert await secrets.fetch("ada", ["db"]) == {"db": "of ada"}
    assert await secrets.fetch("default", ["db"]) == {"db": "of default\n"}
    assert await secrets.fetch("a/../ada", ["db"]) == {"db": "of a path"}
    assert "no secret" in await why_not(secrets, "db", "bob")
    assert "no secret" in await why_not(secrets, "other", "ada")


async def test_the_environment_comes_first_and_files_may_be_replaced(tmp_path: Path) -> None:
    put(tmp_path, "default", "db", b"from the file")
    assert await Secrets({"TIDE_SECRET_DB": "from the variable"}, tmp_path).fetch("default", ["db"]) == {
        "db": "from the variable"
    }
    secrets = Secrets({}, tmp_path)
    await secrets.fetch("default", ["db"])
    put(tmp_path, "default", "db", b"renewed")
    assert await secrets.fetch("default", ["db"]) == {"db": "renewed"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"abc", "fewer than 4 characters"),
        (b"", "fewer than 4 characters"),
        (b"\xff\xfe\xfd\xfc", "no text in UTF-8"),
        (b"nul\0nul", "no text that could be handed over"),
        (b"x" * (MAX_SECRET + 1), "more than 65536 bytes"),
    ],
)
async def test_what_cannot_be_kept_secret_or_handed_over_is_refused_without_being_shown(
    tmp_path: Path, data: bytes, why: str
) -> None:
    put(tmp_path, "default", "odd", data)
    said = await why_not(Secrets({}, tmp_path), "odd")
    assert why in said
    assert "'odd'" in said
    assert not data or data.decode(errors="replace") not in said


async def test_a_folder_in_place_of_a_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "default" / "db").mkdir(parents=True)
    assert "cannot be read: Is a directory" in await why_not(Secrets({}, tmp_path), "db")
    (tmp_path / "ada").write_text("no folder")
    assert "no secret" in await why_not(Secrets({}, tmp_path), "db", "ada")


async def test_a_variable_that_is_no_text_is_refused() -> None:
    secrets = Secrets({"TIDE_SECRET_DB": os.fsdecode(b"pass\xffword")})
    assert "no text that could be handed over" in await why_not(secrets, "db")


async def test_taken_secrets_are_gone_from_the_environment() -> None:
    environment = {"TIDE_SECRET_DB": "hunter22", "TIDE_DATABASE": "x"}
    secrets = Secrets.taken_from(environment, None)
    assert environment == {"TIDE_DATABASE": "x"}
    assert await secrets.fetch("default", ["db"]) == {"db": "hunter22"}


async def test_only_for_what_a_worker_does_not_have_itself_the_store_is_asked(tmp_path: Path) -> None:
    put(tmp_path, "default", "file", b"from the file")
    asked: list[list[str]] = []

    async def stored(names: Sequence[str]) -> dict[str, str]:
        asked.append(list(names))
        return {"kept": "from the store"}

    secrets = Secrets({"TIDE_SECRET_HERE": "from the variable"}, tmp_path)
    found = await secrets.fetch("default", ["kept", "here", "file"], stored)
    assert found == {"kept": "from the store", "here": "from the variable", "file": "from the file"}
    assert list(found) == ["kept", "here", "file"]
    await secrets.fetch("default", ["here", "file"], stored)
    assert asked == [["kept"]]
    with pytest.raises(Fatal, match="no secret 'nowhere' for the tenant 'default' at this worker, and none is stored"):
        await secrets.fetch("default", ["kept", "nowhere"], stored)


@pytest.mark.parametrize("error", [SecretsLocked("no key is configured"), NotFound("run of job", 7)])
async def test_what_the_store_cannot_open_is_as_fatal_as_what_is_missing(error: Exception) -> None:
    async def stored(_: Sequence[str]) -> dict[str, str]:
        raise error

    with pytest.raises(Fatal, match=str(error)):
        await Secrets({}).fetch("default", ["db"], stored)


def test_the_key_of_stored_secrets_is_taken_out_of_the_environment_too() -> None:
    environment = {"TIDE_SECRETS_KEY": "k", "TIDE_SECRETS_KEY_FILE": "/f", "TIDE_SECRET_A": "aaaa", "PATH": "/bin"}
    Secrets.taken_from(environment, None)
    assert environment == {"PATH": "/bin"}

"""Where secrets come from, and what is said of those that do not come."""

import os
from pathlib import Path

import pytest

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

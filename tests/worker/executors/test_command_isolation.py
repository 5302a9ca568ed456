"""A command is kept as far apart as it asks for: not less than the operator wants, if the machine can do that much."""

from pathlib import Path
from unittest.mock import patch

import pytest

from tests.worker.executors.conftest import LAYERS
from tests.worker.executors.tools import command_executor, order, outcome
from tidewheel.tasks.definition import Isolation
from tidewheel.worker.execution import End, Ended
from tidewheel.worker.executors.command import CommandExecutor
from tidewheel.worker.sandbox import landlock
from tidewheel.worker.sandbox.layers import Grounds, Sandbox
from tidewheel.worker.sandbox.namespaces import Ability

needs_all_layers = pytest.mark.skipif(
    not (LAYERS["landlock"].active and LAYERS["pid-namespace"].active), reason="this machine cannot give strict"
)
NETWORK = "network-namespace"
LACKING = "the kernel is too old"


async def ran(executor: CommandExecutor, wish: str | None, usual: Isolation = "standard") -> Ended:
    args = {"argv": ["true"], **({} if wish is None else {"isolation": wish})}
    return await outcome(executor, order("command", args, isolation=usual))


@needs_all_layers
async def test_a_command_has_the_layers_that_it_asks_for_and_its_attempt_says_so(tmp_path: Path) -> None:
    async with command_executor(tmp_path) as executor:
        strict, standard, none = [await ran(executor, wish) for wish in ("strict", "standard", "none")]

    assert {strict.end, standard.end, none.end} == {End.RETURNED}
    assert NETWORK in strict.usage.isolation
    assert NETWORK not in standard.usage.isolation
    assert "landlock" in standard.usage.isolation
    assert "landlock" not in none.usage.isolation


@pytest.mark.parametrize(("least", "wish"), [("standard", "none"), ("strict", "none"), ("strict", "standard")])
async def test_a_command_that_asks_for_less_than_the_operator_wants_does_not_run(
    tmp_path: Path, least: Isolation, wish: str
) -> None:
    async with command_executor(tmp_path, least=least) as executor:
        refused = await ran(executor, wish, usual="strict")

    assert refused == Ended(end=End.FATAL, message=f"isolation: must be at least {least} on this worker, not {wish}")


@needs_all_layers
async def test_a_command_that_asks_for_nothing_has_what_the_operator_wants(tmp_path: Path) -> None:
    async with command_executor(tmp_path, least="strict") as executor:
        ended = await ran(executor, None, usual="strict")

    assert ended.end is End.RETURNED
    assert NETWORK in ended.usage.isolation


async def test_a_machine_that_cannot_give_strict_refuses_it_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with command_executor(tmp_path) as executor:
        monkeypatch.setattr(await executor._launchers.get(), "lacking", LACKING)
        refused, standard = await ran(executor, "strict"), await ran(executor, None)

    assert refused == Ended(end=End.FATAL, message=f"isolation: this worker cannot give strict: {LACKING}")
    assert standard.end is End.RETURNED


@pytest.mark.parametrize(
    ("ability", "version", "lacking"),
    [
        (Ability.ROOT, 0, "no Landlock"),
        (Ability.NONE, 3, "neither namespaces"),
        (Ability.NONE, 4, None),
        (Ability.USER, 1, None),
    ],
)
def test_what_a_machine_lacks_for_strict_is_known(ability: Ability, version: int, lacking: str | None) -> None:
    with (
        patch("tidewheel.worker.sandbox.namespaces.probe", return_value=ability),
        patch.object(landlock, "version", return_value=version),
    ):
        found = Sandbox(Grounds()).lacking_for_strict()

    assert (found is None) if lacking is None else (lacking in str(found))


async def test_an_isolation_that_there_is_not_ends_the_run_with_the_field(tmp_path: Path) -> None:
    async with command_executor(tmp_path) as executor:
        refused = await outcome(executor, order("command", {"argv": ["true"], "isolation": "some"}))

    assert (refused.end, refused.message) == (End.FATAL, "isolation: must be one of standard, strict, none")

"""Which tasks an app has, asked without loading it; and what is said of an app that cannot be loaded."""

import sys
from pathlib import Path

import pytest

from tests.worker.executors.tools import APP
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.worker.executors.describing import describe
from tidewheel.worker.executors.launching import LauncherOptions
from tidewheel.worker.executors.process import ProcessExecutor

HEAD = "from tidewheel.tasks.registry import Registry\nclass App:\n    registry = Registry()\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_the_catalogue_comes_from_another_process() -> None:
    sys.modules.pop("tests.worker.executors.sample_app", None)
    kinds = {entry.kind: entry for entry in await describe(APP)}

    assert kinds["add"].mode == "process"
    assert "tests.worker.executors.sample_app" not in sys.modules


async def test_the_app_is_looked_for_in_the_current_directory(here: Path) -> None:
    (here / "shop.py").write_text(HEAD + "app = App()\n")

    assert await describe("shop:app") == []


async def test_an_app_with_very_many_tasks_is_described_whole(here: Path) -> None:
    (here / "many.py").write_text(
        HEAD + "from tidewheel.tasks.definition import TaskDefinition, TaskOptions\n"
        "app = App()\n"
        "for number in range(3000):\n"
        "    kind = f'task-{number}-' + 'x' * 150\n"
        "    app.registry.add(TaskDefinition(kind=kind, function=print, mode='process', options=TaskOptions()))\n"
    )

    assert len(await describe("many:app")) == 3000


@pytest.mark.parametrize(
    ("app", "why"),
    [
        ("shop", "must be written like package.module:attribute, not 'shop'"),
        ("shop:", "must be written like package.module:attribute, not 'shop:'"),
        ("../shop:app", "must be written like package.module:attribute, not '../shop:app'"),
        ("no_such:app", "there is no module no_such"),
        ("shop.no_such:app", "there is no module shop.no_such"),
        ("shop:no_such", "shop has no attribute no_such"),
        ("shop:number", "shop:number is not an app, but of type int"),
        ("broken:app", "importing broken failed: ZeroDivisionError: division by zero"),
        ("missing:app", "importing missing failed: ModuleNotFoundError: No module named 'not_installed'"),
        ("syntax:app", "importing syntax failed: SyntaxError: '(' was never closed"),
        ("leaving:app", "importing leaving failed: SystemExit: 3"),
        ("dying:app", "the process that loads dying:app died"),
    ],
)
async def test_an_app_that_cannot_be_loaded_gets_one_clear_reason(here: Path, app: str, why: str) -> None:
    (here / "shop.py").write_text(HEAD + "app = App()\nnumber = 42\n")
    (here / "broken.py").write_text("1 / 0\n")
    (here / "missing.py").write_text("import not_installed\n")
    (here / "syntax.py").write_text("f(\n")
    (here / "leaving.py").write_text("import sys\nsys.exit(3)\n")
    (here / "dying.py").write_text("import os\nos._exit(3)\n")

    with pytest.raises(Invalid) as refused:
        await describe(app)
    assert (refused.value.field, refused.value.why) == ("app", why)


async def test_an_executor_refuses_an_app_that_cannot_be_loaded(tmp_path: Path) -> None:
    options = LauncherOptions(app="no_such:app")
    process = ProcessExecutor(options, clock=SystemClock(), directory=tmp_path, slots=1)

    with pytest.raises(Invalid, match="there is no module no_such"):
        await process.open()
    await process.close()

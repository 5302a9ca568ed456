"""Scenes with running workers: one for a module, or one for a test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.worker.running import Scene, a_scene


@pytest.fixture(scope="module")
def scenes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Scene]]:
    """Scenes by store, opened when they are needed, with a worker that has the options of the module (`OPTIONS`)."""
    with ExitStack() as stack:

        @cache
        def scene_on(store: str) -> Scene:
            server = request.getfixturevalue("postgres_server") if store == "postgres" else None
            scene = stack.enter_context(a_scene(tmp_path_factory.mktemp("scene"), store, server))
            scene.start(*getattr(request.module, "OPTIONS", ()))
            return scene

        yield scene_on


@pytest.fixture
def scene(request: pytest.FixtureRequest, scenes: Callable[[str], Scene]) -> Scene:
    """The scene of this module on the store that the test names."""
    return scenes(getattr(request, "param", "sqlite"))


@pytest.fixture
def empty_scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """A database without workers."""
    store = getattr(request, "param", "sqlite")
    server = request.getfixturevalue("postgres_server") if store == "postgres" else None
    with a_scene(tmp_path, store, server) as scene:
        yield scene

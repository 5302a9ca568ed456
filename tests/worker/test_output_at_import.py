"""What an app sets up when it is loaded must not lead what runs say past their own logs."""

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidewheel.cli.children import runner
from tidewheel.logs.streams import RoutedStream


async def test_an_app_that_takes_hold_of_the_streams_when_it_is_loaded_gets_those_of_the_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[object] = []

    def load(_app: str) -> None:
        seen.extend((sys.stdout, sys.stderr))
        raise RuntimeError("loaded")

    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    monkeypatch.setattr(runner, "load_registry", load)
    shop = SimpleNamespace(setup=SimpleNamespace(app="some:app"))

    with pytest.raises(RuntimeError, match="loaded"):
        await runner._build(cast("Any", shop), cast("Any", None))

    assert [type(stream) for stream in seen] == [RoutedStream, RoutedStream]

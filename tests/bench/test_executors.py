"""The benchmark of the executors tells all that it promises, on sizes far too small to mean anything."""

from bench.executors import ISOLATIONS, measure


async def test_every_kind_is_measured_behind_every_layer() -> None:
    figures = await measure(jobs=20, slots=2)

    names = {f"{kind}_{isolation}_per_s" for kind in ("process", "command") for isolation in ISOLATIONS}
    assert names <= figures.keys()
    assert all(figures[name] > 0 for name in names)

"""Which of the tests that are run again and again on another ground stand for all of them in `make test`.

The others are proofs: `.ci/run` runs each on every ground.
"""

import zlib
from collections import Counter
from typing import Final

import pytest

ONE_STORE: Final = ("tests.api.", "tests.worker.test_running")
"""Tests of the server and of whole workers, for which all stores are alike: `tests/contract` sees to that. Each is run
on one of the stores, half of them on either."""
STORES: Final = ("sqlite", "postgres")


EVERY_OTHER: Final = ("tests.dashboard.test_pages", "tests.sdk.test_joining")
"""Tests that are the same for many pages or ways: each is run on every second of them. So are those of `tests/contract`
on PostgreSQL, where each takes four times as long: every test is run there, and with every second of its parameters."""


def part_of(item: pytest.Item, parts: int) -> int:
    """Return in which of so many parts a test is, the same each time and whatever its parameters are."""
    return zlib.crc32(item.name.partition("[")[0].encode()) % parts


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    stores = {item: store for item in items if (store := _store_of(item)) is not None}
    seen = {(_test_of(item), store) for item, store in stores.items()}
    for item, store in stores.items():
        chosen = STORES[part_of(item, 2)]
        if store != chosen and (_test_of(item), chosen) in seen:
            item.add_marker(pytest.mark.proof)
    met = Counter[str]()
    for item in filter(_is_one_of_many, items):
        if met[_test_of(item)] % 2:
            item.add_marker(pytest.mark.proof)
        met[_test_of(item)] += 1


def _is_one_of_many(item: pytest.Item) -> bool:
    name = getattr(getattr(item, "module", None), "__name__", "")
    on_postgres = "postgres" in item.name.partition("[")[2]
    return name in EVERY_OTHER or (name.startswith("tests.contract.") and on_postgres)


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _store_of(item: pytest.Item) -> str | None:
    """Return the store that a test is run on, if it is of those that are run on either."""
    call, module = getattr(item, "callspec", None), getattr(item, "module", None)
    if call is None or module is None or not module.__name__.startswith(ONE_STORE):
        return None
    return next((value for value in call.params.values() if value in STORES), None)

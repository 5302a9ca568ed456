"""What every store promises, held against each of them.

The tests ask for `store` (open, empty), `worker` (registered, its lease is an hour long) and, where they need several
stores on one database, faults or the passing of time, for `backend`. They never sleep and never ask which store it is.

A store behind a server (`served.py`) joins where it offers what is tested. A test that is about something else of it is
marked `native` with the reason; whole modules about such things are listed in `NOT_OFFERED` below.

A new store joins in two steps: a subclass of `Backend` in `backends.py`, which opens it on an empty database whose time
stands still at `START`, and a line in `_MAKERS` below. One without connections to cut leaves `cut` alone.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import pytest

from tests.builders import HOUR, a_worker
from tests.contract.backends import Backend, SqliteBackend
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.served import ServedBackend
from tests.postgres import SharedPostgres
from tests.sampling import part_of
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

Maker = Callable[[], Backend]


def _sqlite(request: pytest.FixtureRequest) -> Maker:
    folder = request.getfixturevalue("memory_path")
    return lambda: SqliteBackend(folder)


def _postgres(request: pytest.FixtureRequest) -> Maker:
    server: SharedPostgres = request.getfixturevalue("postgres_server")
    template: str = request.getfixturevalue("postgres_template")
    return lambda: PostgresBackend(server, template)


def _remote(request: pytest.FixtureRequest) -> Maker:
    folder = request.getfixturevalue("memory_path")
    return lambda: ServedBackend(folder)


_MAKERS: Final = {"sqlite": _sqlite, "postgres": _postgres, "remote": _remote}


@pytest.fixture(params=_MAKERS)
def new_backend(request: pytest.FixtureRequest) -> Iterator[Maker]:
    """A function that makes empty databases, for tests that need many; not from inside a running loop."""
    native = request.node.get_closest_marker("native")
    if request.param == "remote" and native is not None:
        pytest.skip(native.args[0])
    make = _MAKERS[request.param](request)
    made: list[Backend] = []

    def make_and_note() -> Backend:
        made.append(backend := make())
        return backend

    yield make_and_note
    for backend in made:
        backend.destroy()


@pytest.fixture
def empty_backend(new_backend: Maker) -> Backend:
    return new_backend()


@pytest.fixture
async def backend(empty_backend: Backend) -> AsyncIterator[Backend]:
    yield empty_backend
    await empty_backend.close()


@pytest.fixture
async def store(backend: Backend) -> Store:
    return await backend.open()


@pytest.fixture
async def worker(store: Store) -> Worker:
    """With the longest lease there is, so that a test may let minutes pass."""
    return await store.register(a_worker(ttl=HOUR))


NOT_OFFERED: Final = {
    "test_ages": "chores are the server's own",
    "test_audit": "the audit log is written by the server",
    "test_dependencies_large": "size is a matter of the database",
    "test_duties": "duties are the server's own",
    "test_expiry_and_upkeep": "chores are the server's own",
    "test_key_races": "keys are looked after at the server",
    "test_keys": "keys are looked after at the server",
    "test_large": "size is a matter of the database",
    "test_occurrence_faults": "occurrences are made by the server",
    "test_occurrences": "occurrences are made by the server",
    "test_overlaps": "occurrences are made by the server",
    "test_planted_bugs": "bugs are planted in the statements of the databases",
    "test_schedule_races": "occurrences are made by the server",
    "test_shares": "tenants are looked after at the server",
    "test_state_machine": "each of its many histories would need a server of its own",
    "test_telling": "messages are sent by the server",
    "test_waiting_bound": "the order of claims is a matter of the database; test_order shows that it arrives",
}
"""Modules about what a store behind a server does not offer, and why."""


PROVED: Final = {"test_races", "test_dependency_races"}
"""Modules whose many rounds take seconds each behind a server; there they are proofs, apart from those of `BRIEF`."""

BRIEF: Final = (
    "test_claimers_of_many_lanes_share_the_work",
    "test_of_submits_with_the_same_id_one_wins",
    "test_two_reapers_take_a_worker_back_once",
    "test_whole_graphs_come_to_their_end_whoever_works_on_them",
)


DECIDED_BELOW: Final = {
    "test_cancel",
    "test_caps",
    "test_dead_letters",
    "test_dependencies",
    "test_gate_ends",
    "test_gates",
    "test_key_caps",
    "test_limit_rules",
    "test_limits",
    "test_matching",
    "test_order",
    "test_rates",
    "test_redrive",
    "test_relatives",
    "test_retry_budget",
    "test_settle",
    "test_slow_gates",
    "test_urgent_claims",
    "test_why",
}
"""Modules about what the database decides, which a server only passes on: there one test of eight stands for the
others, which are proofs. Of the other modules it is one of four."""


def _is_proof(item: pytest.Item) -> bool:
    module, name = item.path.stem, item.name.partition("[")[0]
    if "remote" not in item.name:
        return False
    if module in PROVED:
        return not name.startswith(BRIEF)
    return part_of(item, 8 if module in DECIDED_BELOW else 4) != 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in filter(_is_proof, items):
        item.add_marker(pytest.mark.proof)
    out = {item for item in items if "remote" in item.name and item.path.stem in NOT_OFFERED}
    if out:
        items[:] = [item for item in items if item not in out]
        config.hook.pytest_deselected(items=list(out))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "native(why): for stores that are databases, and not for one behind a server")
    config.addinivalue_line("markers", "large: fills a store with a hundred thousand jobs or more")

"""A page that finds nothing among many jobs costs the same, however many there are, and leads on or knows better."""

from datetime import UTC, datetime
from typing import Any

import apsw
import pytest

from tidewheel.model.states import State
from tidewheel.store.base import JobFilter
from tidewheel.store.sqlite import searching
from tidewheel.store.sqlite.migrate import MIGRATIONS

FEW, MANY = 2_000, 20_000
TENANT = "INSERT INTO tenant (id, name) VALUES (1, 'default')"
LANE = """
    INSERT INTO lane (id, tenant, queue, kind, needs, keyed)
    VALUES (1, 1, 'default', 'mail', '', 0), (2, 1, 'rare', 'rare', '', 0)
"""
HISTORY = """
    WITH RECURSIVE number (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM number WHERE n < :last)
    INSERT INTO job_history (id, lane, tenant, priority, state, run_at, due_at, token, failures, losses, args, labels,
                             created_at, updated_at, finished_at, cause, ran, error)
    SELECT unhex(printf('%032x', n)), 1, 1, 1, iif(n % 2, 'succeeded', 'dead'), n, n, 1, 0, 0, '{}', '{"rare":"no"}',
           n, n, n, 'returned', 1, iif(n % 2, NULL, '{"message":"boom"}')
      FROM number
"""


def steps(connection: apsw.Connection, where: JobFilter) -> int:
    """Return how many hundreds of steps a page takes. That nobody has a label, kind or word is known from phrases."""
    taken = 0

    def count() -> bool:
        nonlocal taken
        taken += 1
        return False

    connection.set_progress_handler(count, 100)
    page = searching.find(connection, where, 50, None)
    connection.set_progress_handler(None)
    assert page.jobs == []
    assert (page.next is None) == bool(where.label or where.kind or where.error or where.text)
    return taken


@pytest.mark.parametrize("tenant", [None, "default"])
@pytest.mark.parametrize(
    "where",
    [
        {"label": ("rare", "yes")},
        {"error": "needle"},
        {"text": "needle"},
        {"kind": "rare"},
        {"queue": "rare"},
        {"states": frozenset({State.SUCCEEDED}), "label": ("rare", "yes")},
        {"states": frozenset({State.DEAD, State.SUCCEEDED}), "kind": "rare"},
        {"states": frozenset({State.DEAD}), "label": ("rare", "yes")},
        {"label": ("rare", "yes"), "kind": "mail", "created_before": datetime(2001, 1, 1, tzinfo=UTC)},
    ],
    ids=" and ".join,  # the order of a set differs between the processes of a run
)
def test_a_page_that_finds_nothing_takes_as_long_among_few_as_among_many(
    monkeypatch: pytest.MonkeyPatch, where: dict[str, Any], tenant: str | None
) -> None:
    monkeypatch.setattr(searching, "SCAN", 200)
    connection = apsw.Connection(":memory:")
    for migration in MIGRATIONS:
        connection.execute(migration.sql)
    connection.execute(TENANT)
    connection.execute(LANE)
    connection.execute(HISTORY, {"first": 1, "last": FEW})
    few = steps(connection, JobFilter(tenant=tenant, **where))
    connection.execute(HISTORY, {"first": FEW + 1, "last": MANY})
    assert steps(connection, JobFilter(tenant=tenant, **where)) <= 1.2 * few + 5

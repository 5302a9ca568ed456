"""What the tests of the benchmarks share."""

import pytest

from tests.postgres import SharedPostgres


@pytest.fixture
def shared_server(postgres_server: SharedPostgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure on the server of the run: sizes too small to mean anything need no durable one of their own."""
    monkeypatch.setenv("TIDE_TEST_POSTGRES_URL", postgres_server.url)

"""The server's bound of the lines of a run, beside that of a worker."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from tidewheel.logs.quota import LAST_BYTES, WHOLE_RUNS, kept_of
from tidewheel.model.log import LogLine
from tidewheel.server.run_lines import RunLines

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("token", [1, 8 * WHOLE_RUNS + 1, 10 * WHOLE_RUNS + 1, 1000])
def test_all_that_a_worker_keeps_of_a_run_is_kept_by_the_server_also_if_it_comes_twice(token: int) -> None:
    texts = ["x" * 200] * ((kept_of(token) + LAST_BYTES) // 200)
    lines = [LogLine(UUID(int=1), token, number, NOW, "stdout", None, text) for number, text in enumerate(texts)]
    bound = RunLines()

    assert bound.fit(lines) == lines
    assert bound.fit(lines) == lines

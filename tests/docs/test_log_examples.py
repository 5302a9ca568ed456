"""The program of the page about searching logs is run against a real `tide up`."""

from pathlib import Path

import pytest

from tests.api.test_processes import tide
from tests.docs.test_sdk_examples import run, save


@pytest.mark.slow
def test_the_program_about_searching_does_what_it_says(tmp_path: Path) -> None:
    [search] = save(tmp_path, "docs/how-to/search-logs.md")
    with tide(tmp_path, "up", "up", "--slots", "1", "--port", "0") as (_, client):
        fields = "{'level': 'warn', 'event': 'slow query', 'user.id': 42}"
        assert run(tmp_path, search, TIDE_URL=str(client.base_url)).splitlines() == [
            "1 ['payment', 'EUR'] {}",
            f"2 ['42'] {fields}",
            f"2 [] {fields}",
            "q: has a quotation mark that is not closed",
            "[('succeeded', 1)]",
        ]

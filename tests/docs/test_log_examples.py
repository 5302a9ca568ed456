"""The program of the page about searching logs is run against a real `tide up`."""

from pathlib import Path

import pytest

from tests.api.test_processes import tide
from tests.docs.test_sdk_examples import run, save
from tidewheel.logs.quota import MAX_KEPT, MAX_LINES
from tidewheel.model.retry import MAX_ATTEMPTS, RetryPolicy

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_program_about_searching_does_what_it_says(tmp_path: Path) -> None:
    [search] = save(tmp_path, "docs/how-to/search-logs.md")
    with tide(tmp_path, "up", "up", "--slots", "1", "--port", "0") as (_, client):
        fields = "{'level': 'warn', 'event': 'slow query', 'user.id': 42}"
        assert run(tmp_path, search, TIDE_URL=str(client.base_url)).splitlines() == [
            "1 ['payment', 'EUR'] {}",
            f"2 ['42'] {fields}",
            f"2 ['slow query'] {fields}",
            f"2 [] {fields}",
            "q: has a quotation mark that is not closed",
            "[('succeeded', 1)]",
        ]


def test_the_page_says_how_much_a_job_may_store() -> None:
    page = " ".join((ROOT / "docs/how-to/search-logs.md").read_text().split())
    assert MAX_KEPT == 1 << 20
    assert f"the first MiB or {MAX_LINES:,} lines".replace(",", " ") in page
    usual = RetryPolicy().max_attempts
    assert f"with the usual {usual} attempts at most {usual} MiB" in page
    assert f"`max_attempts = {MAX_ATTEMPTS}` (the most there may be) about {round(MAX_ATTEMPTS / 1024)} GiB" in page

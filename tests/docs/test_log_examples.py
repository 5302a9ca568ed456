"""The program of the page about searching logs is run against a real `tide up`."""

from pathlib import Path

import pytest

from tests.api.test_processes import tide
from tests.docs.test_sdk_examples import run, save
from tidewheel.logs.quota import LAST_BYTES, LAST_LINES, MAX_KEPT, MAX_LINES, kept_of

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
    assert f"the last lines ({LAST_LINES}, or {LAST_BYTES >> 10} KiB)" in page
    assert [kept_of(token) for token in (20, 21, 41, 200, 201, 10_000)] == [1 << 20, 1 << 19, 1 << 18, 2048, 1024, 1024]
    assert (
        "from the 21st on half a MiB is kept, from the 41st on a quarter, and so on down to 1 KiB from the 201st"
        in page
    )
    assert sum(kept_of(token) for token in range(1, 201)) < 40 << 20
    assert "it stores 40 MiB" in page

"""What jobs are found by is reached by its indexes alone, also by plans that were made when there was little of it."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.postgres_store.plans import MODES, Mode, Prepared
from tests.postgres_store.tools import Connect

pytestmark = pytest.mark.slow

MANY: Final = 10_000
MOMENT: Final = 2**30
PERIOD: Final = MOMENT >> 16
FILL: Final = f"""
    WITH said AS (
        SELECT 'order=' || md5(n::text) AS phrase, {MOMENT} + n % 1000 AS moment FROM generate_series(1, {MANY}) AS n
    ), named AS (
        INSERT INTO tidewheel.phrase SELECT moment >> 16, tidewheel.phrase_id(1, phrase), 1, phrase FROM said
    )
    INSERT INTO tidewheel.phrase_moment SELECT tidewheel.phrase_id(1, phrase), moment FROM said
"""
KNOWN: Final = "order=c4ca4238a0b923820dcc509a6f75849b"
STATEMENTS: Final[Mapping[str, list[Any]]] = {
    "note_phrases": [[1, 1], [KNOWN, "order=new"], [MOMENT + 1, MOMENT + 1]],
    "phrases_with": [["c4c", "4ca", "ca4", "a42"], "%c4ca42%", 1, 0, PERIOD, 2000],
    "moments_of_phrases": [[7, 8, 9], MOMENT + 2000, 0, 1000],
    "erase_moment": [1, KNOWN, MOMENT + 1],
    "erase_phrase": [1, KNOWN, MOMENT + 1],
    "periods_of_phrases": [PERIOD],
}
MOST_ROWS: Final = 50


@pytest.mark.parametrize("mode", MODES)
async def test_a_plan_that_was_made_when_there_was_little_stays_right(
    new_postgres_database: str, connect: Connect, mode: Mode
) -> None:
    connection = await connect(new_postgres_database)
    for table in ("phrase", "phrase_moment"):
        await connection.execute(f"ALTER TABLE tidewheel.{table} SET (autovacuum_enabled = off)")
    await connection.execute("VACUUM ANALYZE tidewheel.phrase, tidewheel.phrase_moment")
    kept = await Prepared.all(await connect(new_postgres_database), list(STATEMENTS), mode)
    for name, values in STATEMENTS.items():
        await kept.explain(name, values)
    await connection.execute(FILL)
    await connection.execute("SELECT gin_clean_pending_list('tidewheel.phrase_parts'::regclass)")
    for name, values in STATEMENTS.items():
        plan = await kept.explain(name, values)
        for table in ("phrase", "phrase_moment"):
            ways = plan.ways_to(table)
            assert ways <= {"phrase_period", "phrase_parts", "phrase_moment_place"}, (name, ways)
            assert plan.rows_of(table) <= MOST_ROWS, (name, table)

"""Numbers over time."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import apsw
import msgspec

from tidewheel.model.histogram import bucket_of, from_text, to_text
from tidewheel.model.states import State
from tidewheel.model.statistics import (
    DROP_MINUTES,
    HOUR,
    KEEP_STATISTICS,
    MINUTE,
    StatFilter,
    StatPoint,
    StatRow,
    Sums,
    begin_of,
    spans_of,
)
from tidewheel.store.counting import Numbers, StatKey, added_up
from tidewheel.store.sqlite.connection import SQL, rows
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import instant, json_text, micros, span

_durations: Final = msgspec.json.Decoder(list[int]).decode


def statistics(connection: apsw.Connection, where: StatFilter, now: datetime) -> list[StatPoint]:
    """See `store.counting.StatStore.statistics`; the filter was checked."""
    sums, spans = Sums(where.step), spans_of(where, now)
    scope = {"tenant": where.tenant, "kind": where.kind, "queue": where.queue}
    for hour, since, before in ((1, *spans[:2]), (0, *spans[2:])):
        if since < before:
            values = {"hour": hour, "since": micros(since), "before": micros(before), **scope}
            folded = connection.execute(SQL["statistics"], values)
            sums.add(
                StatRow._make((instant(row[0]), *row[1:5], from_text(row[5]), from_text(row[6]))) for row in folded
            )
    values = {"since": micros(spans.hours_since), "before": micros(where.before), **scope}
    fresh = connection.execute(SQL["unfolded"], values)
    sums.add(StatRow._make((instant(row[0]), *row[1:5], _counted(row[5]), _counted(row[6]))) for row in fresh)
    return sums.points()


def finished(connection: apsw.Connection) -> dict[tuple[str, State], int]:
    """See `store.counting.StatStore.finished`."""
    return {(queue, State(state)): jobs for queue, state, jobs in rows(connection, "finished", {})}


def missed(connection: apsw.Connection) -> int:
    """See `store.counting.StatStore.missed`."""
    return sum(number for (number,) in rows(connection, "missed", {}))


def fold(session: Session, limit: int) -> int:
    """See `store.counting.StatStore.fold_statistics`."""
    now = session.now
    ended = session.rows("take_ended", limit=limit)
    session.run("add_finished", rows=json_text([row[1:4] for row in ended]))
    for hour, step in ((0, MINUTE), (1, HOUR)):
        noted = ((_key(row, step), Numbers(row[3], _counted(row[4]), _counted(row[5]))) for row in ended)
        _add(session, noted, hour)
    session.run("forget_minutes", until=micros(begin_of(instant(now - span(DROP_MINUTES)), HOUR)), limit=limit)
    forgotten = session.connection.changes()
    session.run("retire_statistics", until=now - span(KEEP_STATISTICS))
    return len(ended) + forgotten


def _add(session: Session, found: Iterable[tuple[StatKey, Numbers]], hour: int) -> None:
    new = added_up(found)
    if not new:
        return
    keys = json_text([(micros(at), lane, state) for at, lane, state in new])
    before = [(_key(row, MINUTE), _stored(row)) for row in session.rows("folded", keys=keys, hour=hour)]
    sums = added_up([*new.items(), *before])
    kept = [
        (micros(at), lane, state, one.jobs, to_text(one.delays), to_text(one.runs))
        for (at, lane, state), one in sums.items()
    ]
    session.run("keep_statistics", rows=json_text(kept), hour=hour)


def _key(row: Any, step: timedelta) -> StatKey:
    return begin_of(instant(row[0]), step), row[1], row[2]


def _stored(row: Any) -> Numbers:
    return Numbers(row[3], from_text(row[4]), from_text(row[5]))


def _counted(text: str) -> Counter[int]:
    return Counter(bucket_of(duration / 1e6) for duration in _durations(text))

"""Steering single jobs: cancel and redrive."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.checks import check_text
from tidewheel.model.job import Job
from tidewheel.model.states import WAITING, Cause
from tidewheel.store.sqlite.ending import end_waiting
from tidewheel.store.sqlite.lanes import pair_of
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.searching import job_in
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of, json_text, span

MAX_REASON: Final = 1000
NOT_SEEN: Final[Mapping[UUID, int]] = {}

_active: Final = msgspec.json.Decoder(Waiting).decode


def check_reason(reason: str) -> None:
    """Refuse reasons that cannot be stored."""
    check_text("reason", reason, MAX_REASON)


def cancel(session: Session, job_id: UUID, tenant: str | None, reason: str) -> Job:
    """See `store.base.JobStore.cancel`."""
    now = session.now
    found = session.value("find_active", id=job_id.bytes, tenant=tenant)
    if found is not None:
        job = _active(found)
        if job.state in WAITING:
            end_waiting(session, [job], Cause.CANCELLED, reason, now)
        else:
            session.run("ask_to_stop", place=job.place, reason=reason, now=now)
            session.stir()
    rows = session.rows("get", id=job_id.bytes, tenant=tenant)
    if not rows:
        raise NotFound("job", job_id)
    return job_in(rows[0])


def redrive(
    session: Session, delays: Mapping[UUID, timedelta], tenant: str | None, died: Mapping[UUID, int] = NOT_SEEN
) -> list[UUID]:
    """Send finished jobs round again, each after its delay; see `store.base.JobStore.redrive`.

    `died` are the tokens with which jobs were seen dead: whatever became of them since, these are left alone unless
    they still are.
    """
    now = session.now
    sent: dict[UUID, tuple[int, int, int]] = {}
    unique: set[tuple[int, str]] = set()
    counts: Counter[tuple[int, str]] = Counter()
    jobs = json_text([(job_id, died.get(job_id)) for job_id in delays])
    for place, stored, number, key, lane, priority, state in session.rows("redrivable", jobs=jobs, tenant=tenant):
        if key is not None and (number, key) in unique:
            continue
        unique.add((number, key))
        counts[lane, state] -= 1
        first = session.lanes.like(session.connection, lane, retried=False)  # what begins anew is no retry
        run_at = now + span(delays[id_of(stored)])
        sent[id_of(stored)] = (place, first, run_at)
        session.lanes.mark(pair_of(first, priority), run_at)
    if sent:
        places = json_text([place for place, _, _ in sent.values()])
        session.run("keep_last_attempts", places=places)
        session.run("redrive", sent=json_text(list(sent.values())), now=now)
        session.run("remove_notes", places=places)
        session.run("remove_finished", places=places)
        session.run("count_finished", counts=json_text([(*key, n) for key, n in counts.items()]))
    return list(sent)

"""A database with a little of everything, and the statements of the store with values that fit it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

from tests.builders import HOUR, SECOND, a_claim, a_schedule, a_worker, outcome_of, some_jobs
from tests.postgres_store.tools import Raw
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.ids import time_of
from tidewheel.model.job import Run
from tidewheel.model.notification import Event
from tidewheel.store.base import Store
from tidewheel.store.postgres.log_lines import as_text
from tidewheel.store.postgres.memory import BEGINNING
from tidewheel.store.scheduling import shard_of
from tidewheel.triggers import Interval
from tidewheel.triggers.planning import plan

FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
LATE: Final = datetime(2099, 1, 1, tzinfo=UTC)
BATCH: Final = 50
DUE: Final = 100
QUOTA: Final = 200
AHEAD: Final = 40
"""How many occurrences of a schedule are written ahead."""


class Scene(NamedTuple):
    """What the values of statements refer to."""

    mark: datetime
    lane: int
    keyed_lane: int
    tenant: int
    small_tenant: int
    worker: UUID
    runs: Sequence[Run]
    ended: Sequence[Run]
    queued: Sequence[UUID]
    cancelled: UUID
    parent: UUID = FIRST
    children: Sequence[UUID] = [FIRST]
    schedule: UUID = FIRST
    version: int = 0

    @classmethod
    async def make(cls, store: Store, connection: Raw) -> "Scene":
        worker = await store.register(a_worker(ttl=HOUR))
        await _limited(store, worker.id)
        await _overdue(store, connection)
        await _gated(store)
        family = await _family(store)
        await store.submit(some_jobs(60, "rare", tenant="small"))
        await store.submit(some_jobs(1, "unique", unique_key="u"))
        (unique,) = await store.submit(some_jobs(1, "unique", unique_key="v"))
        await store.cancel(unique.job_id)
        await store.submit(some_jobs(2 * BATCH))
        runs = (await store.claim(a_claim(worker.id, 2 * BATCH, kinds=frozenset({"echo"})))).runs
        ended = runs[BATCH:]
        await store.settle(worker.id, [outcome_of(run) for run in ended])
        for run in runs[:5]:
            await store.cancel(run.job_id)
        queued = [answer.job_id for answer in await store.submit(some_jobs(DUE))]
        schedule = await _schedule(store)
        lane, tenant = await connection.fetchrow("SELECT id, tenant FROM tidewheel.lane WHERE kind = 'echo'") or (0, 0)
        keyed = await connection.fetchval("SELECT id FROM tidewheel.lane WHERE keyed AND kind = 'keyed'")
        mark = await connection.fetchval("SELECT min(run_at) FROM tidewheel.job WHERE id = ANY ($1)", queued)
        version = await connection.fetchval("SELECT lanes FROM tidewheel.meta")
        small = await connection.fetchval("SELECT id FROM tidewheel.tenant WHERE name = 'small'")
        return cls(
            mark,
            lane,
            keyed,
            tenant,
            small,
            worker.id,
            runs[:BATCH],
            ended,
            queued,
            unique.job_id,
            *family,
            schedule,
            version,
        )


async def _limited(store: Store, worker_id: UUID) -> None:
    await store.set_limit("l", 2)
    await store.submit(some_jobs(30, "keyed", limit_keys=("l",)))
    await store.claim(a_claim(worker_id, 30))
    await store.set_limit("l", 10)
    await store.submit(some_jobs(20, "keyed", limit_keys=("l",)))


async def _overdue(store: Store, connection: Raw) -> None:
    await store.submit(some_jobs(20, "overdue", start_by=datetime(2100, 1, 1, tzinfo=UTC)))
    await connection.execute("UPDATE tidewheel.job SET start_by = created_at WHERE start_by IS NOT NULL")


async def _gated(store: Store) -> None:
    await store.submit(some_jobs(20, "gated"))
    await store.close_gate(GateSpec(mode=GateMode.DROP, kind="gated"))


async def _family(store: Store) -> tuple[UUID, list[UUID]]:
    (parent,) = await store.submit(some_jobs(1, "family"))
    children = await store.submit(some_jobs(BATCH, "family", after=(parent.job_id,)))
    return parent.job_id, [child.job_id for child in children]


async def _schedule(store: Store) -> UUID:
    schedule = await store.create_schedule(a_schedule(rule=Interval(SECOND)))
    look = await store.look_ahead(shard_of(schedule.id), AHEAD * SECOND)
    await store.record_occurrences([plan(each, look.now, look.now + AHEAD * SECOND) for each in look.schedules])
    await store.trigger_schedule(schedule.id)
    return schedule.id


class Hot(NamedTuple):
    """A statement, the only ways by which it may reach the table of jobs, and values for it."""

    by: frozenset[str]
    values: Callable[[Scene], Sequence[Any]]
    most_rows: int
    """How many rows of the table it may look at in this scene."""
    flat: bool
    """Whether dead rows cost it nothing."""


def _hot(by: str, values: Callable[[Scene], Sequence[Any]], most_rows: int, *, flat: bool = True) -> Hot:
    return Hot(frozenset(filter(None, by.split(", "))), values, most_rows, flat)


def _ids(runs: Sequence[Run]) -> list[UUID]:
    return [run.job_id for run in runs]


def _one(runs: Sequence[Run]) -> UUID:
    return runs[0].job_id if runs else uuid4()


def _texts(tokens: Sequence[int | None], *same: int | None) -> list[str]:
    """Return arrays as the log takes them: the tokens, and for each of the others as many times the same."""
    return [as_text(column) for column in (tokens, *([value] * len(tokens) for value in same))]


def _tokens(runs: Sequence[Run]) -> list[int]:
    return [run.token for run in runs]


def _pairs(lane: int, floor: datetime) -> list[Any]:
    return [[lane] * 3, [0, 1, 2], [floor] * 3, [BEGINNING.job_id] * 3, [QUOTA] * 3, "open"]


def _standings(scene: Scene) -> list[Any]:
    return [[scene.tenant], ["l"], [2], [None], [None], [None], [0]]


def _specs(scene: Scene) -> list[Any]:
    ids = [uuid4() for _ in range(BATCH)]
    return [
        ids,
        [scene.lane] * BATCH,
        [scene.tenant] * BATCH,
        [1] * BATCH,
        ["{}"] * BATCH,
        *[None] * 11,
        False,
        *_phrases(scene),
    ]


def _phrases(scene: Scene) -> list[Any]:
    return [[scene.tenant] * BATCH, [f"order={number}" for number in range(BATCH)], [2**30] * BATCH]


def _endings(scene: Scene) -> list[Any]:
    n = len(scene.runs)
    return [["running"], _ids(scene.runs), ["dead"] * n, ["gave_up"] * n, *[[None] * n] * 6]


def _edges(scene: Scene) -> list[Any]:
    return [[scene.parent] * len(scene.children), scene.children]


def _page(own: Sequence[Any]) -> list[Any]:
    return [LAST, FIRST, None, None, None, None, None, 20_000, 50, None, None, *own]


HOT: Final[Mapping[str, Hot]] = {
    # claiming
    "peek": _hot("job_due", lambda s: [*_pairs(s.lane, s.mark)[:-2], QUOTA, s.worker], QUOTA + 3),
    "take_all": _hot(
        "job_due, Tid Scan",
        lambda s: [*_pairs(s.lane, s.mark)[:-2], [True] * 3, DUE, s.worker, s.version],
        3 * DUE + 3,
    ),
    "take": _hot("job_due, Tid Scan", lambda s: [s.worker, *_pairs(s.lane, s.mark)], 2 * DUE + 5),
    "pick_keyed": _hot("job_due", lambda s: [s.worker, *_pairs(s.keyed_lane, BEGINNING.run_at)], 30),
    "turn_away": _hot("job_due, Tid Scan", lambda s: [[s.keyed_lane], [1], ["l"]], 60),
    "start_picked": _hot(
        "job_pkey, Tid Scan", lambda s: [s.worker, s.queued[:BATCH], s.mark, *_standings(s)], 2 * BATCH
    ),
    "make_limited": _hot("job_pkey, Tid Scan", lambda s: [s.queued[:BATCH], ["l"] * BATCH], 2 * BATCH),
    "release_waiters": _hot(
        "job_limited, Tid Scan", lambda s: [[s.tenant], ["l"], [8], [2], 0 * SECOND, *_standings(s)], 50
    ),
    "keys_waited_for": _hot("job_limited", lambda _: [], 2),
    "owned": _hot("job_running", lambda s: [s.worker], BATCH + 2, flat=False),
    "sweep": _hot("job_due", lambda s: [[s.lane] * 3, [0, 1, 2]], 3, flat=False),
    "oldest_due": _hot("job_due", lambda s: [[s.lane], [0, 1, 2]], 3, flat=False),
    # settling
    "finish_returned": _hot(
        "job_pkey, Tid Scan", lambda s: [s.worker, _ids(s.runs), _tokens(s.runs), *[None] * 4], 2 * BATCH
    ),
    "finish_involved": _hot(
        "job_pkey, Tid Scan", lambda s: [s.worker, _ids(s.runs), _tokens(s.runs), *[None] * 4], 2 * BATCH
    ),
    "lock_runs": _hot("job_pkey", lambda s: [s.worker, _ids(s.runs), _tokens(s.runs)], BATCH),
    "finish": _hot("job_pkey, Tid Scan", _endings, 2 * BATCH),
    "give_back": _hot(
        "job_pkey, Tid Scan", lambda s: [_ids(s.runs), *([x] * BATCH for x in (SECOND, 1, 0, True))], 2 * BATCH
    ),
    "lanes_without_retries": _hot("job_pkey", lambda s: [_ids(s.runs)], BATCH),
    "append_logs": _hot(
        "job_pkey",
        lambda s: [
            _ids(s.runs),
            *_texts(_tokens(s.runs), 1, 1, None),
            ["[]"] * len(s.runs),
            BATCH,
            2 * BATCH,
            "{NULL}",
        ],
        BATCH,
    ),
    "add_attempts": _hot(
        "job_pkey",
        lambda s: [s.worker, _ids(s.runs), _tokens(s.runs), *([x] * BATCH for x in (None, "failed", None, None))],
        BATCH,
    ),
    "find_ended": _hot(
        "job_pkey",
        lambda s: [s.worker, _ids(s.runs), _tokens(s.runs), [time_of(run.job_id) for run in s.runs]],
        BATCH,
    ),
    "args_of_run": _hot("job_pkey", lambda s: [_one(s.runs), 1, s.worker], 1),
    "note_runs": _hot(
        "job_pkey",
        lambda s: [s.worker, _ids(s.runs), _tokens(s.runs), *([x] * len(s.runs) for x in (0.5, "m", "{}", False))],
        BATCH,
    ),
    # submitting and steering
    "add_jobs": _hot("", _specs, 0),
    "count_waiting": _hot(
        "job_due, job_limited, job_blocked", lambda s: [s.tenant, "default", 2 * DUE], 3 * DUE, flat=False
    ),
    "count_capped": _hot("job_capped", lambda s: [s.tenant, "cap:k=a", 5], 1),
    "first_capped": _hot("job_capped", lambda s: [s.tenant, "cap:k=a", 5], 1),
    "last_capped": _hot("job_capped", lambda s: [s.tenant, "cap:k=a", 5], 1),
    "first_in_line": _hot("job_due, job_limited, job_blocked", lambda s: [s.tenant, "default", 5], 2 * DUE, flat=False),
    "last_in_line": _hot("job_due, job_limited, job_blocked", lambda s: [s.tenant, "default", 5], 2 * DUE, flat=False),
    "lock_waiting": _hot("job_pkey", lambda s: [s.queued[:BATCH]], BATCH),
    "lock_unique": _hot("job_unique", lambda s: [[s.tenant], ["u"]], 1),
    "lock_job": _hot("job_pkey", lambda s: [s.queued[0], None], 1),
    "ask_to_stop": _hot("job_pkey", lambda s: [_one(s.runs), "why"], 1),
    "redrive": _hot("job_unique", lambda s: [[s.cancelled], [time_of(s.cancelled)], None, [SECOND], [None]], 0),
    # dependencies
    "lock_parents": _hot("job_pkey", lambda s: [_ids(s.runs)], BATCH),
    "await_active": _hot("job_pkey, Tid Scan", lambda s: [_ids(s.runs)], 2 * BATCH),
    "open_edges": _hot("", lambda s: [[s.parent], [FIRST], 1000], 0),
    "doomed_edges": _hot("job_pkey", lambda s: [*_edges(s), 1000], BATCH),
    "lock_children": _hot("job_pkey", lambda s: [s.children], BATCH),
    "tell_edges": _hot("", _edges, 0),
    "count_down": _hot("job_pkey, Tid Scan", _edges, 2 * BATCH),
    "blocked_jobs": _hot("job_blocked", lambda _: [1, -1, FIRST, 1000], BATCH),
    "edges_of_blocked": _hot("job_pkey", lambda s: [s.children], BATCH),
    "set_waits": _hot("job_pkey, Tid Scan", lambda s: [s.children, [2] * len(s.children)], 2 * BATCH),
    "parents_page": _hot("", lambda s: [s.children[0] if s.children else FIRST, FIRST, 50], 0),
    "children_page": _hot("", lambda s: [s.parent, FIRST, 50], 0),
    "relatives": _hot("job_pkey", lambda s: [s.children, [time_of(child) for child in s.children]], BATCH),
    "retire_edges": _hot("job_pkey", lambda s: [s.children], BATCH),
    # schedules
    "lock_written_ahead": _hot("job_schedule, job_pkey", lambda s: [s.schedule, s.mark + 10 * SECOND], 2 * AHEAD),
    "lock_waiting_of_schedule": _hot("job_schedule", lambda s: [s.schedule], AHEAD + 1),
    "alive_of_schedules": _hot("job_schedule", lambda s: [[s.schedule, s.worker]], AHEAD + 1),
    "past_occurrences": _hot("job_pkey", lambda s: [[s.schedule], 10, None], 10, flat=False),  # more fall due meanwhile
    "limit_waiters": _hot("job_limited", lambda _: [["default"], ["l"], 10_000], 28),
    "limit_holders": _hot("job_running", lambda _: [["default"], ["l"]], BATCH + 2, flat=False),
    "lock_to_end": _hot("job_pkey", lambda s: [s.queued], DUE),
    # workers and upkeep
    "beat": _hot("job_cancelling", lambda s: [[s.worker], None], 5),
    "cancelling": _hot("job_cancelling", lambda s: [[s.worker]], 5),
    "lock_runs_of_worker": _hot("job_running", lambda s: [s.worker], BATCH + 2, flat=False),
    "queue_facts": _hot("job_due, job_limited", lambda _: [], 32, flat=False),
    "lane_facts": _hot("job_due", lambda _: [], 10, flat=False),
    "schedule_facts": _hot("job_schedule", lambda _: [], 20, flat=False),  # those that are first in line
    "happenings": _hot("job_pkey", lambda _: [100, list(Event)], 100),
    "late_jobs": _hot(
        "job_due, job_limited, job_pkey", lambda _: [None, None, BEGINNING.run_at, LAST, LATE, 5], 60, flat=False
    ),
    "agenda": _hot("job_start_by", lambda _: [8], 1),
    "lock_expired": _hot("job_start_by", lambda _: [1000], 20),
    "stop_behind": _hot("job_running, job_pkey, Tid Scan", lambda s: [[s.lane], "why", True], 4 * BATCH, flat=False),
    "next_by_id": _hot("job_pkey", lambda s: [FIRST, s.queued[0], HOUR, 10], 10, flat=False),
    "lock_old": _hot("job_pkey", lambda s: [s.queued, HOUR], DUE),
    "lock_dropped": _hot("job_due, job_limited, job_blocked", lambda _: [1000], 20),
    # reading
    "get_active": _hot("job_pkey", lambda s: [s.queued[0], None], 1),
    "get_finished": _hot("", lambda s: [_one(s.ended), None, time_of(_one(s.ended))], 0),
    "holders": _hot("job_running", lambda _: ["default", "l", 10], BATCH + 2, flat=False),
    "ahead": _hot("job_due", lambda s: [[s.lane], [1], [s.mark + SECOND], [LAST], 1000], DUE, flat=False),
    "is_retry": _hot("job_pkey", lambda s: [s.queued[0]], 1),
    "waiters_ahead": _hot("job_limited", lambda _: ["default", "l", 2, LATE, LAST, 1000], 28),
    "logs": _hot("", lambda s: [_one(s.ended), time_of(_one(s.ended)), -1, -1, 1000, 2**20], 0),
    "last_logs": _hot("", lambda s: [_one(s.ended), time_of(_one(s.ended)), 2**62, 2**62, 1000, 2**20], 0),
    "notes_of": _hot("", lambda s: [_ids(s.runs)], 0),
    "list_all": _hot("job_pkey", lambda _: _page([True, True, None]), 60, flat=False),
    "any_job_between": _hot("job_pkey", lambda s: [LAST, s.queued[0]], 1),
    "count_unfinished": _hot("job_tenant", lambda s: [s.small_tenant, 50], 60),
    "list_all_of_tenant": _hot("job_tenant", lambda s: _page([True, True, s.small_tenant, None]), 60),
    "fresh_counts": _hot("job_pkey", lambda _: [50], 60, flat=False),
    "fresh_counts_of_tenant": _hot("job_tenant", lambda s: [50, s.small_tenant], 60),
    "list_running": _hot(
        "job_running, job_pkey", lambda _: [LAST, FIRST, *[None] * 5, 50, *[None] * 4], 2 * BATCH + 5, flat=False
    ),
}
"""Every statement that names a job on the way of its life."""

LOOK_AT_MUCH: Final = frozenset(
    {
        "take_census",
        "recount_limits",
        "doubtful_limits",
        "make_limits_of_runs",
        "forget_unused_limits",
        "retire_keys",
        "retire_notes",
        "edge_all",
        "edge_all_of_tenant",
        "named_artifacts",
        "copy_counts",
        "copy_clear_jobs",
        "found_by",
    }
)
"""Chores that count or clear up from time to time, the end of a page that was not filled, and the erasure of a job,
which looks at those of the same second."""

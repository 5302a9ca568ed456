"""Who is measured: on what, how it is set up, and what it keeps of a job that has ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Kept = Literal["postgres", "sqlite", "redis"]


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A queue with two worker processes."""

    title: str
    program: str
    """The module in `bench.rivals.programs`."""
    on: Kept
    pace: int
    """About how many jobs it does in a second on two cores; this decides how many it gets."""
    keeps: str
    """What is left of a job that succeeded."""
    settings: str
    package: str = ""
    """As in the constraints; none for ours."""
    extras: tuple[str, ...] = ()
    """What must be installed with it."""
    copies: int = 1
    """How many programs are started: two of those that do not start processes themselves."""


_HISTORY: Final = "the job and its attempt in history, searchable, for as long as retention says"

CONTESTANTS: Final[Mapping[str, Contestant]] = MappingProxyType(
    {
        "tidewheel_postgres": Contestant(
            title="Tidewheel, PostgreSQL",
            program="tidewheel",
            on="postgres",
            pace=20_000,
            keeps=_HISTORY,
            settings="one worker with two runners and a keeper; async functions",
        ),
        "pgqueuer": Contestant(
            title="PgQueuer, PostgreSQL",
            program="pgqueuer",
            on="postgres",
            pace=12_000,
            keeps="a row in its log; the job is deleted",
            settings="asyncpg and uvloop, batches of 200; async functions",
            package="pgqueuer",
            extras=("asyncpg", "uvloop"),
            copies=2,
        ),
        "procrastinate": Contestant(
            title="Procrastinate, PostgreSQL",
            program="procrastinate",
            on="postgres",
            pace=400,
            keeps="the job and its events, for ever by default",
            settings="psycopg, 20 jobs at once in each process; async functions",
            package="procrastinate",
            extras=("psycopg[binary,pool]",),
            copies=2,
        ),
        "tidewheel_plain_postgres": Contestant(
            title="Tidewheel, PostgreSQL, plain functions",
            program="tidewheel_plain",
            on="postgres",
            pace=900,
            keeps=_HISTORY,
            settings="one worker with two slots and a keeper; plain functions in killable processes, sandboxed",
        ),
        "tidewheel_sqlite": Contestant(
            title="Tidewheel, SQLite",
            program="tidewheel",
            on="sqlite",
            pace=20_000,
            keeps=_HISTORY,
            settings="one worker with two runners and a keeper, synchronous=FULL; async functions",
        ),
        "huey_sqlite": Contestant(
            title="Huey, SQLite",
            program="huey",
            on="sqlite",
            pace=1_500,
            keeps="nothing; a job leaves the file before it runs, and is lost if its worker dies",
            settings="fsync, two processes, its own pace of looking for jobs; plain functions",
            package="huey",
        ),
        "celery_redis": Contestant(
            title="Celery, Redis",
            program="celery",
            on="redis",
            pace=400,
            keeps="nothing",
            settings="two forked processes, late acknowledgement, prefetch 64, results ignored; plain functions",
            package="celery",
            extras=("celery[redis]",),
        ),
        "dramatiq_redis": Contestant(
            title="Dramatiq, Redis",
            program="dramatiq",
            on="redis",
            pace=2_000,
            keeps="nothing",
            settings="two processes of eight threads; plain functions",
            package="dramatiq",
            extras=("dramatiq[redis]",),
        ),
        "rq_redis": Contestant(
            title="RQ, Redis",
            program="rq",
            on="redis",
            pace=250,
            keeps="the job and its result, for 500 seconds by default",
            settings="SimpleWorker, which does not fork for each job; plain functions",
            package="rq",
            copies=2,
        ),
    }
)

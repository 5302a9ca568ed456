"""The server when there is much: lists among millions of jobs, and submits while workers drain at full speed."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from msgspec.structs import replace

from bench.api.requests import SUBMIT
from bench.api.server import Target, figures_of, serving
from bench.api.sizes import Sizes
from bench.grounds.ground import Ground, Place
from bench.jobs import LaneName, fill, outcomes, specs
from bench.measure import Figures, quantile, say
from bench.worker.loads import INLINE
from bench.worker.process import Shape, running
from tidewheel.clock import SystemClock
from tidewheel.model.ids import make_id
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.outcome import Failure, Outcome
from tidewheel.model.states import Cause, State
from tidewheel.store.base import ClaimRequest, JobFilter

TEMPLATES: Final = 100
"""Real jobs of which the others are copies; half of them are finished, one in fifty of these failed for good."""
_LANE: Final = LaneName("mail.send", DEFAULT_TENANT)
LISTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"state": "succeeded"},
    {"state": "queued"},
    {"kind": _LANE.kind},
    {"kind": _LANE.kind, "state": "succeeded"},
    {"queue": "default", "limit": "200"},
    {"label": "team=growth"},
)
"""What people look for first."""
_LABEL: Final = ("order", "ord-48151623")
_KIND: Final = "ledger.close-year"
_MESSAGE: Final = "disk quota exceeded on vol-7731"
RARE: Final[Mapping[str, dict[str, str]]] = {
    "label": {"label": "=".join(_LABEL)},
    "label_and_kind": {"label": "=".join(_LABEL), "kind": _LANE.kind},
    "word_of_label": {"q": "48151623"},
    "kind": {"kind": _KIND},
    "kind_and_state": {"kind": _KIND, "state": "queued"},
    "word_of_kind": {"q": "close-year"},
    "error": {"error": "vol-7731"},
    "word": {"q": "vol-7731"},
    "words": {"q": "quota vol-7731"},
    "word_and_state": {"q": "vol-7731", "state": "cancelled"},
    "nothing": {"q": "vol-9999"},
}
"""What one job has, or none, and others before which millions came."""
_RARE_AGE: Final = timedelta(hours=11)
PAGES: Final = (
    "/ui",
    "/ui/jobs",
    "/ui/jobs?state=dead",
    "/ui/jobs?kind=mail.send&state=succeeded",
    "/ui/jobs?label=team%3Dgrowth",
    "/ui/schedules",
    "/ui/dead-letters",
    "/ui/logs",
    "/ui/gates",
    "/ui/limits",
    "/ui/queues",
    "/ui/workers",
    "/ui/artifacts",
    "/ui/keys",
    "/ui/audit",
)
"""All that the menu leads to; a page of one job is added for each sort of job."""


async def measure_lists(ground: Ground, sizes: Sizes) -> Figures:
    """List jobs of a tenant who has millions, four fifths of them finished, and look at the pages of the dashboard."""
    async with ground.place() as place, serving(place) as server:
        say(f"list: loading {sizes.listed:,} rows")
        shown = await _finish_some(place)
        await place.load_history(sizes.listed * 4 // 5)
        await place.load_due(sizes.listed // 5, [_LANE])
        await place.note_phrases()
        await _add_rare(place)
        await place.tidy()
        order = {
            "connections": 4,
            "method": "GET",
            "paths": [f"/v1/jobs?{urlencode(asked)}" for asked in LISTS],
            "tenant": _LANE.tenant,
            "status": 200,
        }
        await server.load(**order, requests=2 * len(LISTS))
        rounds = [await server.load(**order, requests=sizes.lists) for _ in range(sizes.rounds)]
        one_job = {f"/ui/jobs/{state}": f"/ui/jobs/{job_id}" for state, job_id in shown.items()}
        rare = await _measure_rare(server, sizes)
        pages = await _measure_pages(server, {**{path: path for path in PAGES}, **one_job}, sizes)
    return {**figures_of("list", rounds), **rare, **pages}


async def _finish_some(place: Place) -> dict[State, UUID]:
    """Submit the templates, finish half of them, and return one of each state."""
    await place.store.submit(specs(TEMPLATES, lanes=[_LANE]))
    request = ClaimRequest(worker_id=place.worker_id, limit=TEMPLATES // 2)
    runs = (await place.store.claim(request)).runs
    good, bad = runs[TEMPLATES // 100 :], runs[: TEMPLATES // 100]
    failure = Failure(reason="error", message="SMTPServerDisconnected: Connection unexpectedly closed", detail="…")
    ends = [Outcome(run.job_id, run.token, Cause.GAVE_UP, error=failure) for run in bad]
    await place.store.settle(place.worker_id, [*outcomes(good), *ends])
    (waiting,) = (await place.store.find(JobFilter(states=frozenset({State.QUEUED})), limit=1)).jobs
    return {State.QUEUED: waiting.id, State.SUCCEEDED: good[0].job_id, State.DEAD: bad[0].job_id}


async def _add_rare(place: Place) -> None:
    """Add a job with a rare label, one of a rare kind, and one with a rare message, each as if made hours ago."""
    made = int((SystemClock().now() - _RARE_AGE).timestamp() * 1000)
    three = [replace(spec, id=make_id(made + n, n)) for n, spec in enumerate(specs(3, lanes=[_LANE]))]
    labelled, of_kind, ended = three
    rare = [replace(labelled, labels=dict([_LABEL])), replace(of_kind, kind=_KIND), ended]
    *_, cancelled = await place.store.submit(rare)
    await place.store.cancel(cancelled.job_id, reason=_MESSAGE)


async def _measure_rare(server: Target, sizes: Sizes) -> Figures:
    """Ask for the first page of what is rare, one request after the other."""
    found: dict[str, float] = {}
    latencies: list[float] = []
    for name, asked in RARE.items():
        order = {"connections": 1, "method": "GET", "paths": [f"/v1/jobs?{urlencode(asked)}"], "status": 200}
        await server.load(**order, tenant=_LANE.tenant, requests=2)
        done, _ = await server.load(**order, tenant=_LANE.tenant, requests=sizes.looks)
        latencies += done.latencies
        found[name] = round(1e3 * quantile(done.latencies, 0.99), 1)
        say(f"{name}: p50 {1e3 * quantile(done.latencies, 0.5):.1f} ms, p99 {found[name]} ms")
    return {
        "rare_p50_ms": round(1e3 * quantile(latencies, 0.5), 1),
        "rare_p99_ms": round(1e3 * quantile(latencies, 0.99), 1),
        "rare_p99_ms_by": found,
    }


async def _measure_pages(server: Target, pages: Mapping[str, str], sizes: Sizes) -> Figures:
    """Ask for each page some times, one after the other, as one person does."""
    latencies: dict[str, float] = {}
    for name, path in pages.items():
        order = {"connections": 1, "method": "GET", "paths": [path], "status": 200}
        await server.load(**order, requests=2)
        done, _ = await server.load(**order, requests=sizes.looks)
        latencies[name] = round(1e3 * quantile(done.latencies, 0.99), 1)
        say(f"{name}: p50 {1e3 * quantile(done.latencies, 0.5):.1f} ms, p99 {latencies[name]} ms")
    return {"page_p99_ms": max(latencies.values()), "pages_p99_ms": latencies}


async def measure_busy(ground: Ground, sizes: Sizes) -> Figures:
    """Submit one by one while a worker with two runners has more to do than it can."""
    async with ground.place() as place, serving(place) as server, running(place, Shape(inline=2), [INLINE]):
        rounds = []
        for _ in range(sizes.rounds):
            feeding = asyncio.create_task(_feed(place, sizes))
            rounds.append(await server.load(**SUBMIT, connections=4, requests=sizes.busy_submits))
            feeding.cancel()
            await asyncio.wait([feeding])
    busy = figures_of("busy", rounds)
    return {"submit_p99_ms": busy["busy_p99_ms"], "busy_submit_per_s": busy["busy_per_s"]}


async def _feed(place: Place, sizes: Sizes) -> None:
    """Give the worker something to do all the time."""
    for _ in range(sizes.feeds):
        await fill(place.store, 20_000, 1_000, INLINE.make)
        while await place.any_active(INLINE.lane.tenant):
            await asyncio.sleep(0.05)

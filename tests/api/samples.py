"""One good request for each endpoint, about things that are made for it in whichever tenant.

Who adds an endpoint adds its sample here: `test_everyone.py` then tries it with every role, with keys that open
nothing, and with things of another tenant.
"""

import itertools
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec

from tests.api.conftest import CLOCK, Api
from tests.builders import a_claim, a_job, a_schedule, a_worker, outcome_of
from tidewheel.blobs.names import output_location
from tidewheel.model.access import Actor, Role
from tidewheel.model.alert import AlertState, Finding, Rule, WindowSpec
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, make_key
from tidewheel.model.artifact import ArtifactSpec
from tidewheel.model.cap import QueueCap
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.limit import LimitRule
from tidewheel.model.log import LogLine
from tidewheel.model.notification import Event, SubscriptionSpec
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause
from tidewheel.server.grants import Bringing, Download, Upload, seal

ROOT: Final = Actor(role=Role.ADMIN, name="root")


@dataclass(frozen=True)
class Sample:
    """A request."""

    path: str
    """With {} in place of what names a thing."""
    thing: str = ""
    """Which thing it is about: a method of `Grounds`."""
    body: Any = None
    """What is sent as JSON; `#` in a text becomes a number that is new each time, and `@` the job of the last run."""
    headers: Mapping[str, str] = field(default_factory=dict)
    foreign: int = 404
    """What is answered if the thing is another tenant's."""
    endless: bool = False
    """Whether the answer never ends."""


_SOME_TIME: Final = "since=2030-01-01T00:00:00Z&until=2030-01-01T01:00:00Z"
_LAST_HOUR: Final = {"since": "2020-01-01T00:00:00Z", "until": "2020-01-01T00:03:00Z"}
_SCHEDULE: Final = {"name": "nightly-#", "kind": "report", "cron": "0 2 * * *"}
_CONTENT: Final = "the bytes of a tool"
_WINDOW: Final = {"start": "2030-01-01T00:00:00Z", "end": "2030-01-01T01:00:00Z"}
_ANY: Final = {"if-match": "*"}
_EVERY: Final = {"created_after": "2020-01-01T00:00:00Z"}
"""What all jobs of all tenants meet."""


SAMPLES: Final = {
    "submit_job": Sample("/v1/jobs", body={"kind": "mail"}),
    "submit_batch": Sample("/v1/jobs/batch", body=[{"kind": "mail"}]),
    "list_jobs": Sample("/v1/jobs"),
    "get_job": Sample("/v1/jobs/{}", "ended"),
    "get_result": Sample("/v1/jobs/{}/result", "ended"),
    "list_attempts": Sample("/v1/jobs/{}/attempts", "ended"),
    "list_logs": Sample("/v1/jobs/{}/logs", "ended"),
    "list_parents": Sample("/v1/jobs/{}/parents", "ended"),
    "list_children": Sample("/v1/jobs/{}/children", "ended"),
    "follow_job": Sample("/v1/jobs/{}/events", "ended"),
    "cancel_job": Sample("/v1/jobs/{}/cancel", "waiting", {"reason": "because"}),
    "retry_job": Sample("/v1/jobs/{}/retry", "dead"),
    "erase_job": Sample("/v1/jobs/{}/erase", "dead"),
    "cancel_jobs": Sample("/v1/jobs/cancel", body={"where": _EVERY}),
    "retry_jobs": Sample("/v1/jobs/retry", body={"where": _EVERY}),
    "search_logs": Sample("/v1/logs"),
    "follow_logs": Sample("/v1/logs/tail", endless=True),
    "get_statistics": Sample("/v1/stats"),
    "list_outputs": Sample("/v1/jobs/{}/outputs", "ended"),
    "fetch_output": Sample("/v1/jobs/{}/outputs/1/a.txt", "ended"),
    "offer_artifact": Sample("/v1/artifacts", body={"digest": "a" * 64, "size": 5, "name": "tool"}),
    "list_artifacts": Sample("/v1/artifacts"),
    "get_artifact": Sample("/v1/artifacts/{}", "artifact"),
    "fetch_artifact": Sample("/v1/artifacts/{}/content", "artifact"),
    "upload_artifact": Sample("/v1/uploads/{}", "upload", _CONTENT, {"content-type": "application/octet-stream"}),
    "complete_upload": Sample("/v1/uploads/{}/complete", "upload"),
    "download": Sample("/v1/downloads/{}", "download"),
    "metrics": Sample("/metrics"),
    "explain_job": Sample("/v1/jobs/{}/why", "waiting"),
    "get_checkpoint": Sample("/v1/jobs/{}/checkpoint", "ended"),
    "create_schedule": Sample("/v1/schedules", body=_SCHEDULE),
    "list_schedules": Sample("/v1/schedules"),
    "get_schedule": Sample("/v1/schedules/{}", "schedule"),
    "replace_schedule": Sample("/v1/schedules/{}", "schedule", _SCHEDULE, _ANY),
    "change_schedule": Sample("/v1/schedules/{}", "schedule", {"description": "changed"}, _ANY),
    "delete_schedule": Sample("/v1/schedules/{}", "schedule"),
    "pause_schedule": Sample("/v1/schedules/{}/pause", "schedule"),
    "resume_schedule": Sample("/v1/schedules/{}/resume", "schedule"),
    "trigger_schedule": Sample("/v1/schedules/{}/trigger", "schedule"),
    "preview_schedule": Sample("/v1/schedules/{}/preview", "schedule"),
    "list_fire_times": Sample("/v1/schedules/{}/between?" + _SOME_TIME, "schedule"),
    "backfill_schedule": Sample("/v1/schedules/{}/backfill", "schedule", _LAST_HOUR),
    "list_past_occurrences": Sample("/v1/occurrences?schedule_id={}", "schedule", foreign=200),
    "list_occurrences": Sample("/v1/schedules/{}/occurrences", "schedule"),
    "list_dead_groups": Sample("/v1/dead-letters/groups"),
    "list_dead_letters": Sample("/v1/dead-letters"),
    "redrive_dead_letters": Sample("/v1/dead-letters/redrive", body={"where": {}}),
    "retry_dead_letter": Sample("/v1/dead-letters/{}/retry", "dead", {"args": {"to": "ann"}}),
    "list_gates": Sample("/v1/gates"),
    "close_gate": Sample("/v1/gates", body={"mode": "hold", "kind": "none"}),
    "get_gate": Sample("/v1/gates/{}", "gate"),
    "open_gate": Sample("/v1/gates/{}", "gate"),
    "list_limits": Sample("/v1/limits"),
    "get_limit": Sample("/v1/limits/{}", "limit"),
    "set_limit": Sample("/v1/limits/{}", "limit", {"most": 2}, foreign=200),
    "remove_limit": Sample("/v1/limits/{}", "limit"),
    "list_rules": Sample("/v1/rules"),
    "set_rule": Sample("/v1/rules/{}", "rule", {"waiting": 2, "overflow": "replace"}),
    "remove_rule": Sample("/v1/rules/{}", "rule"),
    "list_caps": Sample("/v1/caps"),
    "set_cap": Sample("/v1/caps/{}", "cap", {"most": 2}, foreign=200),
    "remove_cap": Sample("/v1/caps/{}", "cap"),
    "list_channels": Sample("/v1/channels"),
    "add_channel": Sample("/v1/channels", body={"name": "hook-#", "address": "https://example.org/hook"}),
    "remove_channel": Sample("/v1/channels/{}", "channel"),
    "enable_channel": Sample("/v1/channels/{}/enable", "channel"),
    "test_channel": Sample("/v1/channels/{}/test", "channel"),
    "rotate_secret": Sample("/v1/channels/{}/rotate", "channel", {"keep": "1h"}),
    "list_subscriptions": Sample("/v1/subscriptions"),
    "subscribe": Sample("/v1/subscriptions", "shared_channel", {"channel": "shared", "events": ["dead"]}, foreign=201),
    "unsubscribe": Sample("/v1/subscriptions/{}", "subscription"),
    "list_deliveries": Sample("/v1/deliveries"),
    "resend_delivery": Sample("/v1/deliveries/{}/resend", "delivery"),
    "list_alerts": Sample("/v1/alerts"),
    "acknowledge_alert": Sample("/v1/alerts/{}/acknowledge", "alert"),
    "list_maintenance": Sample("/v1/maintenance"),
    "add_maintenance": Sample("/v1/maintenance", body=_WINDOW),
    "remove_maintenance": Sample("/v1/maintenance/{}", "window"),
    "list_queues": Sample("/v1/queues"),
    "list_workers": Sample("/v1/workers"),
    "register_worker": Sample("/v1/workers", body={"name": "host/1"}),
    "get_worker": Sample("/v1/workers/{}", "worker"),
    "claim_jobs": Sample("/v1/workers/{}/claim", "worker", {"limit": 1}),
    "list_runs": Sample("/v1/workers/{}/runs", "worker"),
    "beat_worker": Sample("/v1/workers/{}/heartbeat", "worker", {"clock": "2030-01-01T00:00:00Z"}),
    "list_stopping": Sample("/v1/workers/{}/stopping", "worker"),
    "settle_runs": Sample("/v1/workers/{}/settle", "worker", {"ends": []}),
    "note_runs": Sample("/v1/workers/{}/notes", "worker", {"notes": []}),
    "fetch_secrets": Sample("/v1/workers/{}/secrets", "run", {"job_id": "@", "token": 1, "names": ["word"]}),
    "find_unfit": Sample("/v1/workers/{}/unfit", "worker", {"total": {"cpu": 1000}}),
    "deregister_worker": Sample("/v1/workers/{}/deregister", "worker"),
    "offer_output": Sample("/v1/jobs/{}/outputs", "running", {"token": 1, "size": 5, "name": "a.txt"}),
    "upload_output": Sample("/v1/outputs/{}", "bringing", _CONTENT, {"content-type": "application/octet-stream"}),
    "complete_output": Sample("/v1/outputs/{}/complete", "bringing"),
    "log_runs": Sample("/v1/logs", body={"lines": []}),
    "declare_app": Sample("/v1/declarations", body={"rules": [{"name": "task:declared", "most": 2}]}),
    "get_me": Sample("/v1/me"),
    "follow_hints": Sample("/v1/hints", endless=True),
    "create_key": Sample("/v1/keys", body={"name": "grafana", "role": "viewer"}),
    "list_keys": Sample("/v1/keys"),
    "get_key": Sample("/v1/keys/{}", "key"),
    "revoke_key": Sample("/v1/keys/{}", "key"),
    "list_secrets": Sample("/v1/secrets"),
    "set_secret": Sample("/v1/secrets/{}", "secret", {"value": "another text"}, foreign=200),
    "remove_secret": Sample("/v1/secrets/{}", "secret"),
    "rotate_secrets": Sample("/v1/secret-rotations"),
    "list_tenants": Sample("/v1/tenants"),
    "set_tenant": Sample("/v1/tenants/{}", "tenant", {"weight": 2.0}),
    "list_audit": Sample("/v1/audit"),
    "live": Sample("/livez"),
    "ready": Sample("/readyz"),
    "healthy": Sample("/healthz"),
    "openapi": Sample("/openapi.json"),
    "docs": Sample("/docs"),
}

NOT_AUDITED: Final[frozenset[str]] = frozenset(
    {
        "register_worker",
        "claim_jobs",
        "beat_worker",
        "settle_runs",
        "note_runs",
        "log_runs",
        "offer_output",
        "fetch_secrets",
        "find_unfit",
        "deregister_worker",
    }
)
"""Endpoints that change something and write nothing down: what workers do is the history of the jobs."""

OF_NOBODY: Final = frozenset({"declare_app", "add_maintenance", "remove_maintenance", "set_rule", "remove_rule"})
"""Endpoints that change what belongs to no tenant."""


@dataclass
class Grounds:
    """Makes things of tenants. Whatever words they hold have the mark of their tenant in them."""

    api: Api
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _ended: dict[str, UUID] = field(default_factory=dict)
    _last_run: UUID | None = None

    async def key_of(self, role: Role, tenant: str | None, **fields: Any) -> tuple[str, ApiKey]:
        """Return the text of a new key, and what everyone may see of it."""
        made = make_key(secrets.token_bytes(ENTROPY))
        spec = KeySpec(name=f"{mark_of(tenant or 'all')} {role}", role=role, tenant=tenant, **fields)
        return made.text, await self.api.store.create_key(spec, made.proof, by=ROOT)

    async def waiting(self, tenant: str) -> UUID:
        """A job that waits."""
        mark = f"{mark_of(tenant)}-{next(self._numbers)}"
        spec = a_job(mark, queue=mark, args={"to": mark}, labels={"l": mark}, tenant=tenant, unique_key=mark)
        [submitted] = await self.api.store.submit([spec])
        return submitted.job_id

    async def dead(self, tenant: str) -> UUID:
        """A job that failed for good, with some words."""
        return await self._run(tenant, Cause.GAVE_UP, error=Failure(reason="error", message=mark_of(tenant)))

    async def ended(self, tenant: str) -> UUID:
        """A job that succeeded; always the same."""
        if tenant not in self._ended:
            job_id = await self._run(tenant, Cause.RETURNED, result=f'"{mark_of(tenant)}"')
            with tempfile.NamedTemporaryFile() as file:
                await self.api.blobs.store_output(job_id, 1, "a.txt", Path(file.name))
            self._ended[tenant] = job_id
        return self._ended[tenant]

    async def artifact(self, tenant: str) -> str:
        """The digest of an artifact."""
        digest = sha256(mark_of(tenant).encode()).hexdigest()
        spec = ArtifactSpec(tenant=tenant, digest=digest, size=1, name=mark_of(tenant), created_by=mark_of(tenant))
        return (await self.api.store.add_artifact(spec)).digest

    async def upload(self, tenant: str) -> str:
        """What allows to bring an artifact."""
        content = msgspec.json.encode(_CONTENT)
        until = int((CLOCK.now() + timedelta(minutes=5)).timestamp())
        digest = sha256(content).hexdigest()
        grant = Upload(tenant=tenant, digest=digest, size=len(content), name="tool", by="ann", until=until)
        return seal(grant, await self.api.service.signing_key())

    async def running(self, tenant: str) -> UUID:
        """A job that runs."""
        job_id = await self.waiting(tenant)
        queue = (await self.api.store.get(job_id)).queue
        worker = await self.api.store.register(a_worker(queues=(queue,), tenant=tenant))
        await self.api.store.claim(a_claim(worker.id, 1, queues=(queue,)))
        return job_id

    async def run(self, tenant: str) -> UUID:
        """A worker that has a run, whose job names a secret."""
        mark, worker = f"{mark_of(tenant)}-{next(self._numbers)}", await self.worker(tenant)
        await self.api.store.set_secret("word", mark, tenant=tenant, by=ROOT)
        args = {"it": {"$secret": "word"}}
        [submitted] = await self.api.store.submit([a_job(mark, queue=mark, args=args, tenant=tenant)])
        await self.api.store.claim(a_claim(worker, 1, queues=(mark,)))
        self._last_run = submitted.job_id
        return worker

    async def secret(self, tenant: str) -> str:
        """The name of a stored secret."""
        name = f"of_{tenant}_{next(self._numbers)}"
        by = Actor(role=Role.ADMIN, name=mark_of(tenant))
        return (await self.api.store.set_secret(name, mark_of(tenant), tenant=tenant, by=by)).name

    async def bringing(self, tenant: str) -> str:
        """What allows to bring the result of a run."""
        until = int((CLOCK.now() + timedelta(minutes=5)).timestamp())
        size = len(msgspec.json.encode(_CONTENT))
        grant = Bringing(job_id=await self.running(tenant), token=1, name=None, size=size, until=until)
        return seal(grant, await self.api.service.signing_key())

    async def download(self, tenant: str) -> str:
        """What allows to fetch a file."""
        until = int((CLOCK.now() + timedelta(minutes=5)).timestamp())
        location = output_location(await self.ended(tenant), 1, "a.txt")
        return seal(
            Download(location=location, name="a.txt", tenant=tenant, until=until), await self.api.service.signing_key()
        )

    async def schedule(self, tenant: str) -> UUID:
        """A schedule."""
        mark = f"{mark_of(tenant)}-{next(self._numbers)}"
        spec = a_schedule(mark, tenant=tenant, description=mark, args={"to": mark})
        return (await self.api.store.create_schedule(spec)).id

    async def worker(self, tenant: str) -> UUID:
        """A worker that came with a key of the tenant."""
        return (await self.api.store.register(a_worker(mark_of(tenant), tenant=tenant))).id

    async def gate(self, tenant: str) -> UUID:
        """A gate that holds nothing."""
        mark = f"{mark_of(tenant)}-{next(self._numbers)}"
        spec = GateSpec(mode=GateMode.HOLD, kind=mark, tenant=tenant, reason=mark)
        return (await self.api.store.close_gate(spec)).id

    async def limit(self, tenant: str) -> str:
        """The key of a limit."""
        key = f"{mark_of(tenant)}-{next(self._numbers)}"
        await self.api.store.set_limit(key, 1, tenant=tenant)
        return key

    async def rule(self, tenant: str) -> str:
        """The name of a rule, which is nobody's."""
        del tenant
        name = f"cap:rule-{next(self._numbers)}"
        await self.api.store.set_rule(LimitRule(name, waiting=1))
        return name

    async def cap(self, tenant: str) -> str:
        """The queue of a cap."""
        queue = f"{mark_of(tenant)}/{next(self._numbers)}"
        await self.api.store.set_cap(QueueCap(tenant, queue, 1))
        return queue

    async def channel(self, tenant: str) -> UUID:
        """A channel."""
        name = f"{mark_of(tenant)}-{next(self._numbers)}"
        spec = ChannelSpec(name=name, address=f"https://example.org/{name}", tenant=tenant)
        return (await self.api.store.add_channel(spec)).channel.id

    async def shared_channel(self, tenant: str) -> str:
        """The name of a channel that each tenant has one of."""
        name = "shared"
        if not any(channel.name == name for channel in await self.api.store.channels(tenant=tenant)):
            await self.api.store.add_channel(ChannelSpec(name=name, address="https://example.org", tenant=tenant))
        return name

    async def alert(self, tenant: str) -> UUID:
        """An alert that fires, of a kind of the tenant."""
        finding = Finding(Rule.DEAD_LETTERS, mark_of(tenant), mark_of(tenant), tenant)
        firing = await self.api.store.alerts(state=AlertState.FIRING)
        others = [Finding(one.rule, one.subject, one.told, one.tenant) for one in firing]
        await self.api.store.keep_alerts([finding, *others])
        return (await self.api.store.alerts(tenant=tenant))[0].id

    async def window(self, tenant: str) -> UUID:
        """A maintenance window to come, which is nobody's."""
        del tenant
        start = CLOCK.now() + timedelta(days=1)
        return (await self.api.store.add_window(WindowSpec(start=start, end=start + timedelta(hours=1)))).id

    async def subscription(self, tenant: str) -> UUID:
        """A subscription to nothing that happens by itself."""
        spec = SubscriptionSpec(
            channel=await self.shared_channel(tenant), events=frozenset([Event.LATE]), kind=mark_of(tenant)
        )
        return (await self.api.store.subscribe(spec, tenant=tenant)).id

    async def delivery(self, tenant: str) -> UUID:
        """A message that waits to be sent."""
        spec = SubscriptionSpec(channel=await self.shared_channel(tenant), events=frozenset([Event.CANCELLED]))
        wish = await self.api.store.subscribe(spec, tenant=tenant)
        await self.api.store.cancel(await self.waiting(tenant))
        await self.api.store.spread_happenings()
        await self.api.store.unsubscribe(wish.id)
        return (await self.api.store.deliveries(tenant=tenant, limit=1))[0].id

    async def key(self, tenant: str) -> UUID:
        """A key."""
        return (await self.key_of(Role.VIEWER, tenant))[1].id

    async def tenant(self, tenant: str) -> str:
        """The tenant itself."""
        return tenant

    async def fill(self, tenant: str) -> None:
        """Make one of each."""
        for thing in dict.fromkeys(sample.thing for sample in SAMPLES.values() if sample.thing):
            await getattr(self, thing)(tenant)

    async def path_of(self, sample: Sample, tenant: str) -> str:
        """Return the path of a sample, about a thing of a tenant."""
        return sample.path.format(await getattr(self, sample.thing)(tenant)) if sample.thing else sample.path

    def body_of(self, sample: Sample) -> bytes | None:
        """Return what a sample sends."""
        if sample.body is None:
            return None
        body = msgspec.json.encode(sample.body).replace(b"#", b"%d" % next(self._numbers))
        return body.replace(b"@", str(self._last_run).encode())

    async def _run(self, tenant: str, cause: Cause, **fields: Any) -> UUID:
        job_id = await self.waiting(tenant)
        queue = (await self.api.store.get(job_id)).queue
        worker = await self.api.store.register(a_worker(queues=(queue,)))
        [run] = (await self.api.store.claim(a_claim(worker.id, 1, queues=(queue,)))).runs
        line = LogLine(job_id, run.token, 0, CLOCK.now(), "stdout", None, mark_of(tenant))
        await self.api.store.append_logs([line])
        await self.api.store.settle(worker.id, [outcome_of(run, cause, **fields)])
        await self.api.store.deregister(worker.id)
        return job_id


def mark_of(tenant: str) -> str:
    """Return the word that all data of a tenant hold."""
    return f"word-of-{tenant}"

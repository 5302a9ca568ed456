"""Secrets that are stored: who gets them, what is told of them, and by which keys they are encrypted."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from tests.builders import HOUR, MINUTE, a_claim, a_worker
from tests.contract.backends import FIRST_KEY, START, Backend
from tests.contract.steps import finish
from tidewheel.errors import Conflict, Invalid, NotFound, SecretsLocked
from tidewheel.model.access import Actor, Role
from tidewheel.model.audit import AuditFilter
from tidewheel.model.job import JobSpec, Run
from tidewheel.model.secret import MAX_SECRET
from tidewheel.model.worker import Worker
from tidewheel.store import secret_rows
from tidewheel.store.base import Store

ANN = Actor(role=Role.OPERATOR, name="ann")
SECOND_KEY, THIRD_KEY = b"2" * 32, b"3" * 32
TEXT = "correct horse battery staple"
ARGS = {"key": {"$secret": "db"}, "deep": [{"x": {"$secret": "other"}}], "plain": "db_two"}


async def put(store: Store, name: str = "db", text: str = TEXT, **whose: str) -> None:
    await store.set_secret(name, text, by=ANN, **whose)


async def started(store: Store, worker: Worker, args: Any = ARGS, tenant: str = "default") -> Run:
    await store.submit([JobSpec(kind="echo", args=args, tenant=tenant)])
    [run] = (await store.claim(a_claim(worker.id, 1))).runs
    return run


async def texts(store: Store, worker: Worker, run: Run, *names: str) -> dict[str, str]:
    return await store.secrets_of_run(worker.id, run.job_id, run.token, names or ("db", "other"))


async def test_of_a_secret_all_is_told_but_its_text(backend: Backend, store: Store) -> None:
    made = await store.set_secret("db", TEXT, by=ANN)
    await put(store, "api_key")
    assert (made.name, made.tenant, made.version, made.changed_at) == ("db", "default", 1, START)
    await backend.clock.advance(MINUTE)
    await put(store, "db", "another text")
    first, second = await store.stored_secrets()
    assert (first.name, first.version, second.name, second.version) == ("api_key", 1, "db", 2)
    assert (second.changed_at, second.sealed_by) == (START + MINUTE, first.sealed_by)
    assert TEXT not in repr((made, first, second))


async def test_a_run_gets_what_its_job_names_and_nothing_else(store: Store, worker: Worker) -> None:
    for name in ("db", "db_two", "unnamed"):
        await put(store, name, f"text of {name}")
    run = await started(store, worker)
    assert await texts(store, worker, run) == {"db": "text of db"}
    assert await texts(store, worker, run, "db", "db_two", "unnamed", "other") == {"db": "text of db"}
    assert await texts(store, worker, run, "other") == {}
    await put(store, "other", "came later")
    assert await texts(store, worker, run) == {"db": "text of db", "other": "came later"}


async def test_only_the_worker_that_has_the_run_gets_them_and_only_while_it_goes_on(
    store: Store, worker: Worker
) -> None:
    await put(store)
    run = await started(store, worker)
    stranger = await store.register(a_worker(ttl=HOUR))
    for who, job, token in (
        (stranger.id, run.job_id, run.token),
        (worker.id, run.job_id, run.token + 1),
        (worker.id, run.job_id, run.token - 1),
        (worker.id, uuid4(), run.token),
    ):
        with pytest.raises(NotFound, match="run of job"):
            await store.secrets_of_run(who, job, token, ["db"])
    assert await texts(store, worker, run) == {"db": TEXT}
    await finish(store, worker, [run])
    with pytest.raises(NotFound):
        await texts(store, worker, run)


async def test_tenants_have_their_own(store: Store, worker: Worker) -> None:
    await put(store, text="of default")
    await put(store, text="of ada", tenant="ada")
    await put(store, "only_ada", "of ada alone", tenant="ada")
    args = {"a": {"$secret": "db"}, "b": {"$secret": "only_ada"}}
    own, adas = await started(store, worker, args), await started(store, worker, args, "ada")
    assert await texts(store, worker, own, "db", "only_ada") == {"db": "of default"}
    assert await texts(store, worker, adas, "db", "only_ada") == {"db": "of ada", "only_ada": "of ada alone"}
    assert [(one.name, one.tenant) for one in await store.stored_secrets(tenant="ada")] == [
        ("db", "ada"),
        ("only_ada", "ada"),
    ]
    with pytest.raises(NotFound, match="no secret only_ada"):
        await store.remove_secret("only_ada", by=ANN)
    assert await store.stored_secrets(tenant="nobody") == []


async def test_one_that_was_removed_is_gone(store: Store, worker: Worker) -> None:
    await put(store)
    run = await started(store, worker)
    await store.remove_secret("db", by=ANN)
    assert (await store.stored_secrets(), await texts(store, worker, run)) == ([], {})
    for name in ("db", "No/Name", "ü" * 300):
        with pytest.raises(NotFound):
            await store.remove_secret(name, by=ANN)
    await put(store)
    assert [one.version for one in await store.stored_secrets()] == [1]


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("", TEXT, "name"),
        ("Big", TEXT, "name"),
        ("7up", TEXT, "name"),
        ("a/b", TEXT, "name"),
        ("a" * 65, TEXT, "name"),
        ("db", "abc", "value"),
        ("db", "", "value"),
        ("db", "nul\0nul", "value"),
        ("db", "half \ud800", "value"),
        ("db", "ü" * (MAX_SECRET // 2 + 1), "value"),
        ("db", "u" * (MAX_SECRET + 1), "value"),
    ],
)
async def test_what_cannot_be_a_secret_is_refused_without_being_shown(
    store: Store, name: str, text: str, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await store.set_secret(name, text, by=ANN)
    assert refused.value.field == field
    assert len(text) < 3 or text not in str(refused.value)
    assert await store.stored_secrets() == []


@pytest.mark.parametrize("text", [b"some bytes", 123456, None])
async def test_what_is_no_text_is_refused_and_not_stored_in_another_form(store: Store, text: Any) -> None:
    with pytest.raises(Invalid, match="value: must be text, not"):
        await store.set_secret("db", text, by=ANN)
    assert await store.stored_secrets() == []


async def test_one_may_be_named_like_what_is_done_with_them(store: Store) -> None:
    await put(store, "rotate")
    assert [one.name for one in await store.stored_secrets()] == ["rotate"]
    await store.remove_secret("rotate", by=ANN)
    assert await store.stored_secrets() == []


async def test_the_largest_text_arrives_whole(store: Store, worker: Worker) -> None:
    large = '"ü\n' * (MAX_SECRET // 4)
    await put(store, text=large)
    assert await texts(store, worker, await started(store, worker)) == {"db": large}


async def test_a_tenant_has_so_many_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_rows, "MOST_SECRETS", 3)
    answers = await asyncio.gather(*(put(store, f"s{number}") for number in range(6)), return_exceptions=True)
    refused = [answer for answer in answers if answer is not None]
    assert len(refused) == 3
    assert all(isinstance(one, Conflict) and "the most that a tenant may have" in str(one) for one in refused)
    there = [one.name for one in await store.stored_secrets()]
    await put(store, there[0], "renewed")
    await put(store, "db", tenant="ada")


async def test_without_a_key_nothing_is_stored_and_all_that_is_said_is_what_to_do(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await put(store)
    run = await started(store, worker)
    backend.use_keys()
    for ask in (put(store, "new"), store.rotate_secrets(by=ANN), texts(store, worker, run)):
        with pytest.raises(SecretsLocked, match="no key is configured for stored secrets: set TIDE_SECRETS_KEY"):
            await ask
    assert await texts(store, worker, run, "other") == {}
    assert [one.name for one in await store.stored_secrets()] == ["db"]


async def test_keys_are_changed_while_all_goes_on(backend: Backend, store: Store, worker: Worker) -> None:
    await put(store)
    await put(store, text="of ada", tenant="ada")
    run = await started(store, worker)
    [before] = await store.stored_secrets()
    backend.use_keys(SECOND_KEY, FIRST_KEY)
    await put(store, "other", "by the second")
    assert await texts(store, worker, run) == {"db": TEXT, "other": "by the second"}
    rotation = await store.rotate_secrets(by=ANN)
    assert (rotation.rotated, rotation.locked) == (2, 0)
    assert (await store.rotate_secrets(by=ANN)).rotated == 0
    backend.use_keys(SECOND_KEY)
    assert await texts(store, worker, run) == {"db": TEXT, "other": "by the second"}
    after, other = await store.stored_secrets()
    assert after.sealed_by == other.sealed_by != before.sealed_by
    assert (after.version, after.changed_at, after.changed_by) == (1, before.changed_at, before.changed_by)


async def test_what_a_lost_key_sealed_stays_locked_until_it_is_set_anew(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await put(store)
    run = await started(store, worker)
    [sealed] = await store.stored_secrets()
    backend.use_keys(THIRD_KEY, SECOND_KEY)
    why = f"the stored secret 'db' cannot be opened: it is encrypted by the key {sealed.sealed_by}, which is not"
    with pytest.raises(SecretsLocked, match=why):
        await texts(store, worker, run)
    rotation = await store.rotate_secrets(by=ANN)
    assert (rotation.rotated, rotation.locked) == (0, 1)
    await put(store, text="set anew")
    assert await texts(store, worker, run) == {"db": "set anew"}


async def test_rotation_goes_through_all_tenants_in_pieces_or_through_one(
    backend: Backend, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        await put(store, f"s{number}", tenant=("ada", "Bob", "a-d")[number % 3])
    backend.use_keys(SECOND_KEY, FIRST_KEY)
    for module in ("secret_rows", "sqlite.secrets", "postgres.secrets"):
        monkeypatch.setattr(f"tidewheel.store.{module}.PIECE", 2)
    assert (await store.rotate_secrets(tenant="ada", by=ANN)).rotated == 3
    assert (await store.rotate_secrets(by=ANN)).rotated == 4


@pytest.mark.native("a server offers no half of a rotation")
@pytest.mark.parametrize("removed", [False, True])
async def test_a_text_that_is_set_during_a_rotation_stays(
    backend: Backend, store: Any, worker: Worker, *, removed: bool
) -> None:
    await put(store)
    backend.use_keys(SECOND_KEY, FIRST_KEY)
    [stale] = await store.stale_secrets(backend.keyring.first, None, ("", ""))
    late = [secret_rows.Resealed(stale, backend.keyring.seal("default", "db", TEXT))]
    backend.use_keys(FIRST_KEY)
    if removed:
        await store.remove_secret("db", by=ANN)  # so that its versions begin anew
    await put(store, text="newer")
    assert await store.reseal(late) == 0
    assert await texts(store, worker, await started(store, worker)) == {"db": "newer"}


async def test_who_changed_what_is_written_down_without_any_text(store: Store) -> None:
    await put(store)
    await put(store, text="another text", tenant="ada")
    await store.remove_secret("db", by=ANN)
    await store.rotate_secrets(by=ANN)
    entries = (await store.audited(AuditFilter(action="secrets.write"))).entries
    told = [(entry.tenant, entry.subject, entry.detail["did"]) for entry in reversed(entries)]
    assert told == [("default", "db", "set"), ("ada", "db", "set"), ("default", "db", "remove"), (None, "", "rotate")]
    assert TEXT not in repr(entries)


async def test_the_database_never_holds_a_text_nor_a_key(backend: Backend, store: Store, worker: Worker) -> None:
    await put(store)
    await put(store, "other", "zebra crossing stripes")
    await put(store, "other", "second text of another")
    run = await started(store, worker)
    await texts(store, worker, run)
    backend.use_keys(SECOND_KEY, FIRST_KEY)
    await store.rotate_secrets(by=ANN)
    await store.remove_secret("other", by=ANN)
    stored = await backend.everything()
    assert b"ann" in stored
    for text in ("horse battery", "zebra crossing", "text of another"):
        assert text.encode() not in stored
        assert text.encode().hex().encode() not in stored.lower()
    assert FIRST_KEY not in stored
    assert SECOND_KEY not in stored

"""The audit log: all or none, in order, by pages, for a year."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from tests.builders import DAY, MINUTE
from tests.contract.backends import START, Backend
from tidewheel.errors import Invalid
from tidewheel.model.access import Action, Actor, Role
from tidewheel.model.audit import AuditEntry, AuditFilter, Change, change_by
from tidewheel.store.base import Store

EVE = Actor(role=Role.OPERATOR, tenant="ada", name="eve", key_id=uuid4())
ROOT = Actor(role=Role.ADMIN, name="root")


def changes(count: int, tenant: str | None = None) -> list[Change]:
    return [change_by(EVE, Action.GATES_WRITE, number, tenant=tenant) for number in range(count)]


async def everything(store: Store, where: AuditFilter, page: int = 3) -> list[AuditEntry]:
    found: list[AuditEntry] = []
    after: UUID | None = None
    for _ in range(100):
        got = await store.audited(where, limit=page, after=after)
        found += got.entries
        if got.next is None:
            return found
        after = got.next
    raise AssertionError("a walk must come to an end")


async def test_entries_come_back_newest_first_with_who_and_what(store: Store) -> None:
    await store.audit([change_by(EVE, Action.JOBS_CANCEL, "j1", tenant="ada", reason="müde", none=None)])
    await store.audit([change_by(ROOT, Action.LIMITS_WRITE, "l", most=3)])
    second, first = await everything(store, AuditFilter())
    assert (first.at, first.actor, first.role, first.key_id) == (START, "eve", "operator", EVE.key_id)
    assert (first.tenant, first.action, first.subject, first.detail) == ("ada", "jobs.cancel", "j1", {"reason": "müde"})
    assert (second.key_id, second.tenant, second.detail) == (None, None, {"most": 3})


async def test_a_list_is_walked_by_pages_without_losing_or_doubling_any(store: Store) -> None:
    await store.audit(changes(7, "ada"))
    await store.audit(changes(2, "bob"))
    assert [entry.subject for entry in await everything(store, AuditFilter(tenant="ada"))] == list("6543210")
    assert len(await everything(store, AuditFilter(), page=1)) == 9
    assert await everything(store, AuditFilter(tenant="carl")) == []


async def test_filters_hold_together(backend: Backend, store: Store) -> None:
    await store.audit(changes(3, "ada"))
    await backend.clock.advance(MINUTE)
    await store.audit([change_by(ROOT, Action.GATES_WRITE, "1"), change_by(EVE, Action.JOBS_RETRY, "1")])
    later = START + MINUTE
    for where, count in [
        (AuditFilter(subject="1"), 3),
        (AuditFilter(subject="1", action="gates.write"), 2),
        (AuditFilter(key_id=EVE.key_id), 4),
        (AuditFilter(key_id=EVE.key_id, since=later), 1),
        (AuditFilter(before=later), 3),
        (AuditFilter(tenant="ada", since=later), 0),
        (AuditFilter(action="gates"), 0),
    ]:
        assert len(await everything(store, where)) == count, where


async def test_what_concerns_all_is_not_shown_to_one_tenant(store: Store) -> None:
    await store.audit([change_by(ROOT, Action.GATES_WRITE, "g")])
    assert (await store.audited(AuditFilter(tenant="default"))).entries == []


async def test_a_bad_change_is_refused_with_all_others(store: Store) -> None:
    for bad, field in [
        (Change(actor=EVE, action="no action"), "changes[1].action"),
        (Change(actor=EVE, action="a", tenant="no tenant"), "changes[1].tenant"),
        (Change(actor=EVE, action="a", detail={"n": float("nan")}), "changes[1].detail"),
        (Change(actor=EVE, action="a", detail={"n": "x" * 20_000}), "changes[1].detail"),
    ]:
        with pytest.raises(Invalid) as refused:
            await store.audit([*changes(1), bad])
        assert refused.value.field == field
    assert (await store.audited(AuditFilter())).entries == []
    await store.audit([])


async def test_odd_texts_are_stored_as_well_as_can_be(store: Store) -> None:
    odd = Actor(role=Role.VIEWER, name="nul\0" + "x" * 300)
    await store.audit([Change(actor=odd, action="a", subject="\ud800" + "y" * 600)])
    (entry,) = (await store.audited(AuditFilter())).entries
    assert (len(entry.actor), len(entry.subject)) == (200, 500)
    assert (entry.actor[:4], entry.subject[:2]) == ("nul�", "�y")


async def test_old_entries_are_removed_in_pieces(backend: Backend, store: Store) -> None:
    await store.audit(changes(5))
    await backend.clock.advance(2 * DAY)
    await store.audit(changes(2))
    assert await store.retire_audit(keep=timedelta(days=3)) == 0
    assert await store.retire_audit(keep=DAY, limit=3) == 3
    assert await store.retire_audit(keep=DAY, limit=3) == 2
    assert await store.retire_audit(keep=DAY, limit=3) == 0
    assert len((await store.audited(AuditFilter())).entries) == 2

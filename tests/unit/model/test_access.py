"""Roles: one table of who may do what."""

import pytest

from tidewheel.errors import Forbidden, Invalid
from tidewheel.model.access import MAY, Action, Actor, Role, parse_role

READS = {Action.JOBS_READ, Action.SCHEDULES_READ, Action.GATES_READ, Action.LIMITS_READ, Action.WORKERS_READ}


def test_every_role_stands_in_the_table_and_every_action_is_for_someone() -> None:
    assert set(MAY) == set(Role)
    assert frozenset().union(*MAY.values()) == frozenset(Action)
    assert MAY[Role.ADMIN] == frozenset(Action)


def test_who_may_more_may_all_that_the_others_may() -> None:
    assert MAY[Role.VIEWER] < MAY[Role.SUBMITTER] < MAY[Role.OPERATOR] < MAY[Role.ADMIN]


def test_a_viewer_changes_nothing() -> None:
    assert all(action.endswith(".read") for action in MAY[Role.VIEWER])
    assert MAY[Role.VIEWER] > READS


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_keys_tenants_and_erasure_are_for_admins(role: Role) -> None:
    assert MAY[role].isdisjoint({Action.KEYS_READ, Action.KEYS_WRITE, Action.TENANTS_WRITE, Action.JOBS_ERASE})


def test_only_workers_and_admins_take_jobs_and_a_worker_submits_and_steers_nothing() -> None:
    assert [role for role in Role if Action.WORKERS_CLAIM in MAY[role]] == [Role.ADMIN, Role.WORKER]
    assert {action for action in MAY[Role.WORKER] if not action.endswith(".read")} == {
        Action.WORKERS_CLAIM,
        Action.ARTIFACTS_WRITE,
    }


def test_what_a_role_may_not_is_refused_by_name() -> None:
    viewer = Actor(role=Role.VIEWER)
    viewer.check(Action.JOBS_READ)
    with pytest.raises(Forbidden, match=r"role viewer .* jobs\.submit"):
        viewer.check(Action.JOBS_SUBMIT)


@pytest.mark.parametrize(
    ("own", "asked", "scope"),
    [(None, None, None), (None, "bob", "bob"), ("ada", None, "ada"), ("ada", "ada", "ada")],
)
def test_an_actor_works_for_its_own_tenant_or_for_the_one_it_names(
    own: str | None, asked: str | None, scope: str | None
) -> None:
    actor = Actor(role=Role.ADMIN, tenant=own)
    assert actor.scope(asked) == scope
    assert (actor.home, actor.everywhere) == (own or "default", own is None)


def test_another_tenant_is_refused_whether_it_exists_or_not_and_names_must_be_names() -> None:
    with pytest.raises(Forbidden):
        Actor(role=Role.ADMIN, tenant="ada").scope("bob")
    with pytest.raises(Invalid, match="tenant"):
        Actor(role=Role.ADMIN).scope("no name")


@pytest.mark.parametrize("word", ["king", "", "ADMIN", None, 7, "admin "])
def test_a_role_that_does_not_exist_is_refused(word: object) -> None:
    with pytest.raises(Invalid, match="role: must be one of admin, operator, submitter, viewer, worker"):
        parse_role(word)
    assert parse_role("worker") is Role.WORKER

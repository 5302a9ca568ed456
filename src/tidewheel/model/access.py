"""Who may do what: roles, the actions that each of them may take, and the actor on whose behalf something happens.

There is one table, `MAY`. Whatever has a door asks `Actor.check` at it; nothing else knows what a role may do.
"""

import enum
from collections.abc import Mapping
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import Forbidden, Invalid
from tidewheel.model.checks import check_name
from tidewheel.model.job import DEFAULT_TENANT


class Role(enum.StrEnum):
    """What a key is for. Stored."""

    ADMIN = "admin"
    """All of it, keys and tenants too."""
    OPERATOR = "operator"
    """Steers what runs: gates, limits, schedules, retries."""
    SUBMITTER = "submitter"
    """Hands over jobs, cancels them and reads what became of them."""
    VIEWER = "viewer"
    """Reads."""
    WORKER = "worker"
    """Takes jobs and says what became of them."""


class Action(enum.StrEnum):
    """What can be done. The names stand in the audit log."""

    JOBS_READ = "jobs.read"
    """Jobs with their arguments, results, attempts, logs and numbers."""
    JOBS_SUBMIT = "jobs.submit"
    JOBS_CANCEL = "jobs.cancel"
    JOBS_RETRY = "jobs.retry"
    JOBS_ERASE = "jobs.erase"
    SCHEDULES_READ = "schedules.read"
    SCHEDULES_WRITE = "schedules.write"
    GATES_READ = "gates.read"
    GATES_WRITE = "gates.write"
    LIMITS_READ = "limits.read"
    LIMITS_WRITE = "limits.write"
    WORKERS_READ = "workers.read"
    WORKERS_CLAIM = "workers.claim"
    """All that a worker does: register, claim, beat, log, settle."""
    ARTIFACTS_READ = "artifacts.read"
    ARTIFACTS_WRITE = "artifacts.write"
    NOTIFICATIONS_READ = "notifications.read"
    """Channels without their secrets, subscriptions and the delivery log."""
    NOTIFICATIONS_WRITE = "notifications.write"
    ALERTS_READ = "alerts.read"
    ALERTS_WRITE = "alerts.write"
    SECRETS_READ = "secrets.read"
    """The names of stored secrets; what they stand for is read by nobody."""
    SECRETS_WRITE = "secrets.write"
    TENANTS_READ = "tenants.read"
    TENANTS_WRITE = "tenants.write"
    KEYS_READ = "keys.read"
    KEYS_WRITE = "keys.write"
    AUDIT_READ = "audit.read"


_VIEW: Final = frozenset(
    {
        Action.JOBS_READ,
        Action.SCHEDULES_READ,
        Action.GATES_READ,
        Action.LIMITS_READ,
        Action.WORKERS_READ,
        Action.ARTIFACTS_READ,
        Action.NOTIFICATIONS_READ,
        Action.ALERTS_READ,
        Action.SECRETS_READ,
    }
)
_SUBMIT: Final = _VIEW | {Action.JOBS_SUBMIT, Action.JOBS_CANCEL, Action.ARTIFACTS_WRITE}
_OPERATE: Final = _SUBMIT | {
    Action.JOBS_RETRY,
    Action.SCHEDULES_WRITE,
    Action.GATES_WRITE,
    Action.LIMITS_WRITE,
    Action.NOTIFICATIONS_WRITE,
    Action.ALERTS_WRITE,
    Action.SECRETS_WRITE,
    Action.TENANTS_READ,
    Action.AUDIT_READ,
}

MAY: Final[Mapping[Role, frozenset[Action]]] = {
    Role.ADMIN: frozenset(Action),
    Role.OPERATOR: _OPERATE,
    Role.SUBMITTER: _SUBMIT,
    Role.VIEWER: _VIEW,
    # It reads the results of parents and fetches artifacts, and stores files that runs left behind.
    Role.WORKER: frozenset({Action.WORKERS_CLAIM, Action.JOBS_READ, Action.ARTIFACTS_READ, Action.ARTIFACTS_WRITE}),
}


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """On whose behalf something happens."""

    role: Role
    tenant: str | None = None
    """The tenant whose things exist for it; None for all."""
    key_id: UUID | None = None
    """None if there was no key: at the machine itself, or where none is needed."""
    name: str = ""
    """For people: the name of the key, or how it came without one."""

    @property
    def home(self) -> str:
        """The tenant of what it makes without naming one."""
        return DEFAULT_TENANT if self.tenant is None else self.tenant

    @property
    def everywhere(self) -> bool:
        """Whether it also speaks for what belongs to no tenant, such as a gate on all of a kind."""
        return self.tenant is None

    def may(self, action: Action) -> bool:
        """Tell whether its role allows an action."""
        return action in MAY[self.role]

    def check(self, action: Action) -> None:
        """Raise Forbidden if its role does not allow an action."""
        if not self.may(action):
            raise Forbidden(action, self.role)

    def scope(self, asked: str | None = None) -> str | None:
        """Return the tenant to read and write for: its own, or for one of all tenants what was asked for.

        Raises Forbidden if another tenant's was asked for; whether there is such a tenant makes no difference.
        """
        if asked is not None:
            check_name("tenant", asked)
        if self.tenant is None or asked in (None, self.tenant):
            return self.tenant if asked is None else asked
        raise Forbidden("other tenants", self.role)


def parse_role(value: object, field: str = "role") -> Role:
    """Return the role that a word stands for."""
    for role in Role:
        if value == role:
            return role
    raise Invalid(field, f"must be one of {', '.join(Role)}")

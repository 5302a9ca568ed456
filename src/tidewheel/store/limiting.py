"""What every store promises about limits by key: how many jobs run at once, start in a time, or wait.

The rules of `store.base` hold here, too. A limit is that of one key of one tenant. A rule is what holds for a family
of keys, each of which gets a limit of its own when it is first used.
"""

from collections.abc import Sequence
from typing import Protocol

from tidewheel.model.limit import Limit, LimitRule, LimitUse
from tidewheel.model.rate import Pace


class LimitStore(Protocol):
    """For operators, for workers that know what tasks declare, and for the keeper."""

    async def set_limit(
        self,
        key: str,
        most: int | None = None,
        *,
        rate: Pace | None = None,
        tenant: str = "default",
        version: int | None = None,
    ) -> Limit:
        """Let at most `most` jobs with this key run at once, or so many of them start in a time, or both.

        Replaces what held for the key, a rule included. Waiters are let go if there is more room now. The tokens that a
        bucket has stay what they are, up to its new burst; a new bucket is full. With a `version` (see `model.version`)
        it raises StaleVersion if the limit has another one, or is not there.
        """
        ...

    async def remove_limit(self, key: str, *, tenant: str = "default", version: int | None = None) -> None:
        """Remove a limit; if a rule holds for the key it does so again, and else all who wait are let go.

        Raises NotFound, and StaleVersion as `set_limit` does.
        """
        ...

    async def limit(self, key: str, *, tenant: str = "default") -> Limit:
        """Return the limit of a key with how many run under it. Raises NotFound."""
        ...

    async def limits(
        self, *, tenant: str | None = None, limit: int | None = None, after: tuple[str, str] | None = None
    ) -> list[Limit]:
        """Return the limits with how many run under each, by tenant and key.

        No more than `limit`, beginning after the tenant and key `after`.
        """
        ...

    async def limit_uses(self, keys: Sequence[tuple[str, str]]) -> list[LimitUse]:
        """Return who waits for the limits of these tenants and keys, and who holds them, in the same order."""
        ...

    async def set_rule(self, rule: LimitRule) -> None:
        """Let the key `name` and every key `name=value` have these limits, each for itself and for each tenant.

        Keys that follow the rule already are changed, and their waiters let go if there is more room now; those that
        have a limit of their own keep it. The store makes what it needs for a key when it is first used.

        A rule whose name begins with `cap:` bounds how many jobs wait with each of its keys, in all queues together, by
        the rules of `store.capping.CapStore.set_cap`; what waits already counts.
        """
        ...

    async def declare_rules(self, rules: Sequence[LimitRule]) -> int:
        """Set rules that tasks declare, except those that were set by hand; return how many were changed by that."""
        ...

    async def remove_rule(self, name: str) -> None:
        """Remove a rule and the limits that followed it, and let go all who wait for them. Raises NotFound."""
        ...

    async def rules(self) -> list[LimitRule]:
        """Return the rules, by name."""
        ...

    async def repair_limits(self) -> int:
        """Recount what runs under each limit, release waiters that have room; return how many counters were wrong."""
        ...

    async def forget_unused_limits(self, *, limit: int = 1000) -> int:
        """Remove the limits of keys that follow a rule and that nobody uses; return how many."""
        ...

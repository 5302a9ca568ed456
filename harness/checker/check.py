"""All rules, over one history."""

from collections.abc import Callable, Iterator
from typing import Final

from harness.checker import endings, loss, order
from harness.checker.history import History, Violation

RULES: Final[tuple[Callable[[History], Iterator[Violation]], ...]] = (
    loss.lost_row,
    loss.stuck,
    loss.false_success,
    loss.unasked_cancel,
    loss.phantom,
    loss.no_start,
    loss.dedup,
    loss.conservation,
    order.concurrent,
    order.maybe_concurrent,
    order.token_reused,
    order.token_order,
    order.wrong_winner,
    order.early,
    order.attempts,
    order.limit,
    order.dag,
    endings.start_after_cancel,
    endings.ran_on,
    endings.cancel_overwritten,
    endings.leak,
)


def check(history: History) -> list[Violation]:
    """Return every broken promise that the records prove."""
    return [violation for rule in RULES for violation in rule(history)]

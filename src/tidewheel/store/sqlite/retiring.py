"""Retention of finished jobs: bounded deletes that look at each job once, not again and again."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from tidewheel.model.retention import Rule
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text, span

PIECES: Final = 20
"""How many pieces one call looks at for each rule."""
FORGET_AFTER: Final = 24 * 3600 * 1_000_000
"""After a day everything is looked at again, for jobs that ended while the clock was wrong."""

_seen: Final = msgspec.json.Decoder(list[tuple[int, int, int]]).decode

Write = Callable[[Callable[[Session], Any]], Any]


class Retention:
    """Where each rule has got to."""

    def __init__(self) -> None:
        self._reached: dict[Rule, tuple[int, int]] = {}
        self._since = 0

    async def retire(self, write: Write, rules: Sequence[Rule], limit: int) -> int:
        """Remove up to `limit` jobs, in pieces, and return how many."""
        gone = 0
        for rule in rules:
            for _ in range(PIECES):
                room = limit - gone
                looked, removed = await write(partial(self._piece, rule, room))
                gone += removed
                if looked < room or gone >= limit:
                    break
        return gone

    def _piece(self, rule: Rule, room: int, session: Session) -> tuple[int, int]:
        if room < 1:
            return 0, 0
        now = session.now
        if not 0 <= now - self._since < FORGET_AFTER:
            self._reached, self._since = {}, now
        since, beyond = self._reached.get(rule, (0, 0))
        values = {"since": since, "beyond": beyond, "until": now - span(rule.age), "limit": room}
        seen = _seen(
            session.value("next_finished", state=rule.state, kind=rule.kind, but=json_text(rule.but), **values)
        )
        if seen:
            self._reached[rule] = (seen[-1][1], seen[-1][0])
        places = [place for place, _, goes in seen if goes]
        _remove(session, rule, places)
        return len(seen), len(places)


def _remove(session: Session, rule: Rule, chosen: list[int]) -> None:
    if not chosen:
        return
    places = json_text(chosen)
    lanes = Counter({lane: -n for lane, n in session.rows("lanes_of_finished", places=places)})
    session.run("remove_attempts", places=places)
    session.run("remove_edges", places=places)
    session.run("remove_finished", places=places)
    session.run("count_finished", counts=json_text([(lane, rule.state, n) for lane, n in lanes.items()]))

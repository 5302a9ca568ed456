"""Limit keys: who may start, who must wait, and whom to let go when there is room.

A job that leaves the queue or ends gives every one of its keys a chance: as many of a key's waiters return to the queue
as it has room for. They may find another of their keys full and wait for that instead; then their other keys are given
a chance in turn, so that room is never left unused while someone waits for it. Who waits for a token is let go by the
first claim after it came.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from tidewheel.model.limit import (
    Release,
    Standing,
    admit,
    changed_by,
    in_turn,
    release_by_end,
    release_by_refill,
    release_by_room,
    rule_of,
)
from tidewheel.model.order import AGING
from tidewheel.store.sqlite.lanes import pair_of
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text, span

Key = tuple[int, str]
"""A tenant's number and the name of one of its keys."""

AHEAD: Final = 500
"""How many jobs behind one that was refused are looked at, so that a full key does not hide what comes after."""
LOOKS: Final = 1000
"""How many keys are looked at in one claim because tokens came for them."""
_ALL: Final = -1


class Candidate(msgspec.Struct, array_like=True, frozen=True):
    """A queued row, and the keys it needs room under."""

    place: int
    tenant: int
    names: tuple[str, ...] | None
    run_at: int

    @property
    def keys(self) -> list[Key]:
        """Its keys, told apart by tenant."""
        return [(self.tenant, name) for name in self.names or ()]


_candidates: Final = msgspec.json.Decoder(list[Candidate]).decode
_standings: Final = msgspec.json.Decoder(list[tuple[int, str, Standing]]).decode
_waited: Final = msgspec.json.Decoder(list[tuple[int, str, int, Standing | None]]).decode
_waiters: Final = msgspec.json.Decoder(list[tuple[int, int, int, int]]).decode


def admit_candidates(session: Session, places: Sequence[int], overdue: Collection[int], now: int) -> set[int]:
    """Give room out to candidates in their order, and make those wait that find none; return their places.

    Those at the `overdue` places waited long for a limit, and come first if it is their turn.
    """
    candidates = _candidates(session.value("keys_of", places=json_text(places)))
    standings = _stand(session, candidates)
    if not standings:
        return set()
    room = {key: standing.room(now) for key, standing in standings.items()}
    old = [index for index, candidate in enumerate(candidates) if candidate.place in overdue]
    old.sort(key=lambda index: candidates[index].run_at)
    keys = [candidate.keys for candidate in candidates]
    decided = admit(keys, room, in_turn(keys, old, standings, now) if old else None)
    refused = {candidates[index]: key for index, key in decided.refused.items()}
    started_old = Counter(key for index in set(old).difference(decided.refused) for key in keys[index])
    _write(session, changed_by(standings, decided.taken, refused.values(), now, started_old))
    _make_wait(session, refused, {key: n - decided.taken.get(key, 0) for key, n in room.items()}, now)
    return {candidate.place for candidate in refused}


def turn_away(session: Session, pairs: Iterable[int], now: int) -> None:
    """Let the first jobs of some pairs wait that would be refused anyway."""
    candidates = _candidates(session.value("keys_ahead", pairs=json_text(list(pairs)), depth=AHEAD, now=now))
    standings = _stand(session, candidates)
    room = {key: standing.room(now) for key, standing in standings.items()}
    refused: dict[Candidate, Key] = {}
    for candidate in candidates:
        full = next((key for key in candidate.keys if room.get(key, 1) <= 0), None)
        if full is not None:
            refused[candidate] = full
    _write(session, changed_by(standings, {}, refused.values(), now, {}))
    _make_wait(session, refused, room, now)


def free(session: Session, held: Mapping[Key, int], now: int) -> None:
    """Note that runs that held keys have ended, and let as many waiters go as there is room for."""
    changed: dict[Key, Standing] = {}
    for tenant, name, waited, standing in _waited(session.value("standings_and_waiters", keys=json_text(list(held)))):
        key = (tenant, name)
        if standing is not None:
            number = held[key]
            left = msgspec.structs.replace(standing, running=max(0, standing.running - number))
            changed[key] = _release(session, key, release_by_end(left, number, now), now) if waited else left
        elif waited:
            _release_waiters(session, key, _ALL, now)
    _write(session, changed)


def let_go(session: Session, keys: Collection[Key], now: int) -> None:
    """Let as many waiters of each key back into the queue as it has room for; all, if it has no limit."""
    if not keys:
        return
    changed: dict[Key, Standing] = {}
    for tenant, name, waited, standing in _waited(session.value("standings_and_waiters", keys=json_text(list(keys)))):
        key = (tenant, name)
        if standing is None:
            _release_waiters(session, key, _ALL if waited else 0, now)
        elif waited:
            changed[key] = _release(session, key, release_by_room(standing, now), now)
    _write(session, changed)


def refill(session: Session, now: int) -> None:
    """Let those go for whom tokens came."""
    due = _standings(session.value("due_looks", now=now, limit=LOOKS))
    _write(
        session,
        {
            (tenant, name): _release(session, (tenant, name), release_by_refill(standing, now), now)
            for tenant, name, standing in due
        },
    )
    session.lanes.look_again_at(session.value("next_look"))


def _release(session: Session, key: Key, release: Release, now: int) -> Standing:
    by_age = _release_aged(session, key, release.by_age, now) if release.by_age else 0
    return release.outcome(by_age + _release_waiters(session, key, release.number - by_age, now))


def _release_aged(session: Session, key: Key, turns: int, now: int) -> int:
    """Let so many of the oldest waiters of a key back into the queue, if they are old; return how many there were."""
    until = now - span(AGING)
    return _let_back(session, session.value("aged_waiters", tenant=key[0], key=key[1], until=until, turns=turns), now)


def _release_waiters(session: Session, key: Key, room: int, now: int) -> int:
    """Let so many waiters of a key back into the queue, and return how many there were."""
    return _let_back(session, session.value("waiters", tenant=key[0], key=key[1], room=room), now) if room else 0


def _let_back(session: Session, found: str, now: int) -> int:
    lanes, places = session.lanes, list[tuple[int, int]]()
    for place, own, priority, run_at in _waiters(found):
        lane = lanes.like(session.connection, own, overdue=True) if run_at <= now - span(AGING) else own
        places.append((place, lane))
        lanes.mark(pair_of(lane, priority), run_at)
    if places:
        session.run("release", waiters=json_text(places), now=now)
    return len(places)


def _write(session: Session, standings: Mapping[Key, Standing]) -> None:
    if not standings:
        return
    rows = [(*key, now.running, now.tokens, now.filled_at, now.look_at, now.passed) for key, now in standings.items()]
    session.run("set_standings", standings=json_text(rows))
    for standing in standings.values():
        if standing.look_at is not None:
            session.lanes.look_at(standing.look_at)


def _stand(session: Session, candidates: Iterable[Candidate]) -> dict[Key, Standing]:
    """Return how the limits of the keys of candidates stand; rows of keys that follow a rule are made as needed."""
    keys = {key for candidate in candidates for key in candidate.keys}
    if not keys:
        return {}
    found = _stand_of(session, keys)
    new = [key for key in keys - found.keys() if ensure_limit(session, key)]
    return found | _stand_of(session, new) if new else found


def ensure_limit(session: Session, key: Key) -> bool:
    """Make the row of a key that follows a rule; tell whether there is such a rule."""
    rule = rule_of(key[1])
    if rule not in session.lanes.rules:
        return False
    session.run("make_limit_key", tenant=key[0], key=key[1], rule=rule)
    return True


def _stand_of(session: Session, keys: Collection[Key]) -> dict[Key, Standing]:
    rows = _standings(session.value("standings", keys=json_text(list(keys))))
    return {(tenant, key): standing for tenant, key, standing in rows}


def _make_wait(session: Session, refused: Mapping[Candidate, Key], room: Mapping[Key, int], now: int) -> None:
    if not refused:
        return
    waits = [(candidate.place, key[1]) for candidate, key in refused.items()]
    session.run("make_limited", refused=json_text(waits), now=now)
    let_go(session, {key for candidate in refused for key in candidate.keys if room.get(key, 0) > 0}, now)

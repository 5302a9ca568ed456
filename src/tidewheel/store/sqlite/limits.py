"""Limit keys: who may start, who must wait, and whom to let go when there is room.

A job that leaves the queue or ends gives every one of its keys a chance: as many of a key's waiters return to the queue
as it has room for. They may find another of their keys full and wait for that instead; then their other keys are given
a chance in turn, so that room is never left unused while someone waits for it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from tidewheel.model.limit import admit
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text

Key = tuple[int, str]
"""A tenant's number and the name of one of its keys."""

AHEAD: Final = 500
"""How many jobs behind one that was refused are looked at, so that a full key does not hide what comes after."""


class Candidate(msgspec.Struct, array_like=True, frozen=True):
    """A queued row, and the keys it needs room under."""

    place: int
    tenant: int
    names: tuple[str, ...] | None

    @property
    def keys(self) -> list[Key]:
        """Its keys, told apart by tenant."""
        return [(self.tenant, name) for name in self.names or ()]


_candidates: Final = msgspec.json.Decoder(list[Candidate]).decode
_rooms: Final = msgspec.json.Decoder(list[tuple[int, str, int]]).decode
_waiters: Final = msgspec.json.Decoder(list[tuple[int, int, int]]).decode


def admit_candidates(session: Session, places: Sequence[int], now: int) -> set[int]:
    """Give room out to candidates in their order, and make those wait that find none; return their places."""
    candidates = _candidates(session.value("keys_of", places=json_text(places)))
    room = _room(session, candidates)
    if not room:
        return set()
    decided = admit([candidate.keys for candidate in candidates], room)
    count_running(session, decided.taken)
    refused = {candidates[index]: key for index, key in decided.refused.items()}
    _make_wait(session, refused, {key: n - decided.taken.get(key, 0) for key, n in room.items()}, now)
    return {candidate.place for candidate in refused}


def turn_away(session: Session, pairs: Iterable[int], now: int) -> None:
    """Let the first jobs of some pairs wait that would be refused anyway."""
    candidates = _candidates(session.value("keys_ahead", pairs=json_text(list(pairs)), depth=AHEAD, now=now))
    room = _room(session, candidates)
    refused: dict[Candidate, Key] = {}
    for candidate in candidates:
        full = next((key for key in candidate.keys if room.get(key, 1) <= 0), None)
        if full is not None:
            refused[candidate] = full
    _make_wait(session, refused, room, now)


def count_running(session: Session, changes: Mapping[Key, int]) -> None:
    """Note that more runs hold keys, or fewer."""
    if changes:
        session.run("add_running", changes=json_text([(*key, n) for key, n in changes.items()]))


def let_go(session: Session, keys: Collection[Key], now: int) -> None:
    """Let as many waiters of each key back into the queue as it has room for; all, if it has no limit."""
    if not keys:
        return
    for tenant, key, room in _rooms(session.value("room_for_waiters", keys=json_text(list(keys)))):
        waiters = session.value("waiters", tenant=tenant, key=key, room=room)
        session.run("release", waiters=waiters, now=now)
        for _, pair, run_at in _waiters(waiters):
            session.lanes.mark(pair, run_at)


def _room(session: Session, candidates: Iterable[Candidate]) -> dict[Key, int]:
    keys = {key for candidate in candidates for key in candidate.keys}
    if not keys:
        return {}
    return {(tenant, name): n for tenant, name, n in _rooms(session.value("room", keys=json_text(list(keys))))}


def _make_wait(session: Session, refused: Mapping[Candidate, Key], room: Mapping[Key, int], now: int) -> None:
    if not refused:
        return
    waits = [(candidate.place, key[1]) for candidate, key in refused.items()]
    session.run("make_limited", refused=json_text(waits), now=now)
    let_go(session, {key for candidate in refused for key in candidate.keys if room.get(key, 0) > 0}, now)

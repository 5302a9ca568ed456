"""A page of memory that the supervisor shares with one of its children, read and written without any system call.

The supervisor writes until when the lease holds. A runner writes which run its event loop is in the middle of, and
until when that one may take: if the loop hangs, the supervisor still knows whom to blame. Every child that takes jobs
also writes when its loop last turned: code that a run left to the loop hangs it unseen. And which runs have begun and
wait for something: if it dies while nobody has the loop, one of those may be the reason, and no other.
"""

import mmap
import os
import struct
from typing import Final, NamedTuple
from uuid import UUID

SIZE: Final = 64 * mmap.PAGESIZE
_LEASE: Final = struct.Struct("<d")
_CURRENT: Final = struct.Struct("<16sqd")
_CURRENT_AT: Final = 64  # a cache line of its own
_BLAMED_AT: Final = 128
_TURNED_AT: Final = 192
_EXPECTED: Final = struct.Struct("<d16sqd")
_EXPECTED_AT: Final = 256
_EXCUSED_AT: Final = 320
_BEGUN: Final = struct.Struct("<16sq")
_BEGUN_AT: Final = 384
_MOST_BEGUN: Final = (SIZE - _BEGUN_AT) // _BEGUN.size
_NOBODY: Final = bytes(_CURRENT.size)
_NO_ID: Final = bytes(16)


class Current(NamedTuple):
    """The run whose code has the event loop, and its deadline in seconds of the monotonic clock."""

    job_id: UUID
    token: int
    deadline: float


class Pulse(NamedTuple):
    """The life of an event loop, in seconds of the monotonic clock."""

    turned: float
    """When it last told that it turns; 0 for one that has not begun."""
    until: float
    """How long it may be silent from then on."""
    due: Current | None
    """The run whose time ends then."""


class Page:
    """The shared page; `fd` is handed to the child."""

    def __init__(self, fd: int | None = None) -> None:
        self.fd = os.memfd_create("tide-page", os.MFD_CLOEXEC) if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, SIZE)
        self._memory = mmap.mmap(self.fd, SIZE)
        self._begun: dict[tuple[bytes, int], int] = {}
        """Where the runs stand that were written here as begun."""
        self._given_up: list[int] = []
        """Places that are free again."""

    @property
    def lease_until(self) -> float:
        """Until when what the child runs may go on, by CLOCK_BOOTTIME."""
        until: float = _LEASE.unpack_from(self._memory)[0]
        return until

    @lease_until.setter
    def lease_until(self, until: float) -> None:
        _LEASE.pack_into(self._memory, 0, until)

    def enter(self, job_id: bytes, token: int, deadline: float) -> None:
        """Note whose code gets the loop; a few hundred nanoseconds, since it is done at every step of a task."""
        _CURRENT.pack_into(self._memory, _CURRENT_AT, job_id, token, deadline)

    def leave(self) -> None:
        """Note that nobody's code has the loop."""
        self._memory[_CURRENT_AT : _CURRENT_AT + _CURRENT.size] = _NOBODY

    @property
    def current(self) -> Current | None:
        """Whose code has the loop. It may be torn while the child writes: believe what is seen twice."""
        return self._read(_CURRENT_AT)

    def _read(self, place: int) -> Current | None:
        job_id, token, deadline = _CURRENT.unpack_from(self._memory, place)
        return None if token == 0 else Current(UUID(bytes=job_id), token, deadline)

    def blame(self, job_id: bytes, token: int) -> None:
        """Ask the supervisor to end this process, because of a run that does not end otherwise."""
        _CURRENT.pack_into(self._memory, _BLAMED_AT, job_id, token, 0.0)

    @property
    def blamed(self) -> Current | None:
        """The run because of which the child wants to be ended."""
        return self._read(_BLAMED_AT)

    def begun(self, job_id: bytes, token: int) -> None:
        """Note a run that is under way, from now on until `over`."""
        place = self._given_up.pop() if self._given_up else len(self._begun)
        if place < _MOST_BEGUN:  # of more than ten thousand the last ones are never suspected
            self._begun[job_id, token] = place
            _BEGUN.pack_into(self._memory, _BEGUN_AT + place * _BEGUN.size, job_id, token)

    def over(self, job_id: bytes, token: int) -> None:
        """Note that nothing can happen any more because of a run."""
        place = self._begun.pop((job_id, token), None)
        if place is not None:
            self._given_up.append(place)
            _BEGUN.pack_into(self._memory, _BEGUN_AT + place * _BEGUN.size, _NO_ID, 0)

    @property
    def under_way(self) -> set[tuple[UUID, int]]:
        """The runs that were under way when the child died."""
        entries = memoryview(self._memory)[_BEGUN_AT : _BEGUN_AT + _MOST_BEGUN * _BEGUN.size]
        with entries:
            return {(UUID(bytes=job_id), token) for job_id, token in _BEGUN.iter_unpack(entries) if token}

    def turn(self, now: float) -> None:
        """Note that the loop turns; for a callback of its own, so nobody's code has the loop."""
        self.leave()
        _LEASE.pack_into(self._memory, _TURNED_AT, now)

    def expect(self, until: float, job_id: bytes = _NO_ID, token: int = 0) -> None:
        """Note until when the loop may be silent, and because of which run."""
        _EXPECTED.pack_into(self._memory, _EXPECTED_AT, until, job_id, token, until)

    @property
    def pulse(self) -> Pulse:
        """How the loop does. As with `current`, believe what is seen twice."""
        until = _LEASE.unpack_from(self._memory, _EXPECTED_AT)[0]
        return Pulse(_LEASE.unpack_from(self._memory, _TURNED_AT)[0], until, self._read(_EXPECTED_AT + _LEASE.size))

    def excuse(self) -> None:
        """Tell the supervisor that this process ends by its own will, and that no run is to blame for it."""
        self._memory[_EXCUSED_AT] = 1

    @property
    def excused(self) -> bool:
        """Whether the child said so. A run that ends its process does not get to say it."""
        return self._memory[_EXCUSED_AT] != 0

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
        os.close(self.fd)

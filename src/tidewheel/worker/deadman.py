"""The dead-man switch: a timer of the kernel that kills this process, even a stopped one, unless set anew in time.

It counts on CLOCK_BOOTTIME, which goes on while a machine is suspended, and is set to an absolute instant, so that a
delay between reading the clock and setting the timer does not lengthen a lease. Children must ask the kernel to die
with their parent. An exec would clear the timer: it belongs into the process that lives as long as the lease.
"""

import ctypes
import os
import signal
from typing import Final

_CLOCK_BOOTTIME: Final = 7
_SIGEV_SIGNAL: Final = 0
_TIMER_ABSTIME: Final = 1
_NANO: Final = 1_000_000_000


class _SigEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_char * 48),
    )


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class DeadMan:
    """Kills this process at the instant it was last armed with."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._timer = ctypes.c_void_p()
        event = _SigEvent(None, signal.SIGKILL, _SIGEV_SIGNAL)
        if self._libc.timer_create(_CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(self._timer)):
            raise _failure("timer_create")

    def arm(self, at: float) -> None:
        """Set the instant, in seconds of CLOCK_BOOTTIME; one that has passed kills at once."""
        nanoseconds = max(1, int(at * _NANO))
        self._set(_TimeSpec(nanoseconds // _NANO, nanoseconds % _NANO))

    def disarm(self) -> None:
        """Kill nobody until armed again."""
        self._set(_TimeSpec(0, 0))

    def _set(self, value: _TimeSpec) -> None:
        setting = _Setting(_TimeSpec(0, 0), value)
        if self._libc.timer_settime(self._timer, _TIMER_ABSTIME, ctypes.byref(setting), None):
            raise _failure("timer_settime")


def _failure(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")

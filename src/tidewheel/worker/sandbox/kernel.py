"""System calls that Python has no name for."""

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Iterable
from typing import Final

# The calls keep the interpreter's lock: a process is never copied while another thread of it runs.
_libc: Final = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

_CLONE3: Final = 435  # the same on every architecture, as are all calls since
_CLONE_ARGS: Final = struct.Struct("8Q")
_CAPABILITY_VERSION_3: Final = 0x20080522
_SIGSET_SIZE: Final = 128
_SIGINFO_SIZE: Final = 128


def prctl(option: int, value: int) -> None:
    """Change an attribute of this process."""
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero))


def syscall(number: int, *arguments: object) -> int:
    """Make a system call by its number."""
    return _check(_libc.syscall(ctypes.c_long(number), *arguments))


def clone(namespaces: int) -> int:
    """Fork into new namespaces: like `os.fork`, return 0 in the child and its pid here."""
    arguments = ctypes.create_string_buffer(_CLONE_ARGS.pack(namespaces, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(_libc.syscall(_CLONE3, arguments, ctypes.c_size_t(_CLONE_ARGS.size)))
    error = ctypes.get_errno()
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(error, os.strerror(error))
    return pid


def mount(source: str, target: str, kind: str | None, flags: int) -> None:
    """Mount a file system in the mount namespace of this process."""
    kind_bytes = None if kind is None else kind.encode()
    _check(_libc.mount(source.encode(), target.encode(), kind_bytes, ctypes.c_ulong(flags), None))


def drop_capabilities() -> None:
    """Give up every capability; with no-new-privileges, executing a program does not bring them back."""
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(ctypes.create_string_buffer(header, 8), ctypes.create_string_buffer(24)))


def signal_descriptor(signals: Iterable[int]) -> int:
    """Return a descriptor that is readable when one of these signals, which must be blocked, is pending."""
    mask = sum(1 << (number - 1) for number in signals)
    buffer = ctypes.create_string_buffer(mask.to_bytes(_SIGSET_SIZE, sys.byteorder), _SIGSET_SIZE)
    return _check(_libc.signalfd(-1, buffer, os.O_CLOEXEC))


def read_signal(descriptor: int) -> tuple[signal.Signals, int]:
    """Return the signal that is pending and the pid of its sender, 0 if that is outside of this namespace."""
    number, _, _, pid = struct.unpack_from("IiiI", os.read(descriptor, _SIGINFO_SIZE))
    return signal.Signals(number), pid


def flush_c_streams() -> None:
    """Write out what C code left in the buffers of its own streams."""
    _libc.fflush(None)


def _check(answer: int) -> int:
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return answer

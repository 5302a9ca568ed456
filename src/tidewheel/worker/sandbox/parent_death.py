"""Dying with one's parent: the kernel's word, which no bug and no signal handler of ours can break."""

import ctypes
import os
import signal
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that forked it ends; end now if that has happened.

    To be called after any change of user, which would clear it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl: {os.strerror(number)}")
    if os.getppid() != parent:
        os._exit(1)

"""A process dies with its parent, by a signal of the kernel.

The signal belongs to the thread that forked, is not inherited, and is cleared when a process changes its user; so each
process asks for it itself, as its last step of that kind. A parent that died before that is found by looking again.
"""

import os
import select
import signal
from collections.abc import Callable

from tidewheel.worker.sandbox.kernel import PR_SET_PDEATHSIG, prctl


def die_with_parent(parent_lives: Callable[[], bool], number: signal.Signals = signal.SIGKILL) -> None:
    """Have this process get a signal when its parent dies, and end at once if that has happened."""
    prctl(PR_SET_PDEATHSIG, number)
    if not parent_lives():
        os._exit(1)


def process_lives(pidfd: int) -> bool:
    """Tell whether a process lives; unlike a pid this says so across namespaces, and never means another process."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return not poll.poll(0)

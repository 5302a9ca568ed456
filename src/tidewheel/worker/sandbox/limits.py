"""Limits of the kernel on each process of a task, which their children inherit.

RLIMIT_AS is left alone: runtimes reserve far more address space than they use. RLIMIT_DATA counts what a process could
write to, which is near to what it uses; the tree as a whole is watched from outside (`executors.watch`).
"""

import contextlib
import resource
from typing import Final

OPEN_FILES: Final = 4096
MAX_THREADS: Final = 1024
"""Processes and threads of one task together that the kernel allows, where it can count them. To clear away a fork bomb
of several thousand processes takes it minutes, during which nothing else on the machine gets on."""
MAX_PROCESSES: Final = 512
"""Processes of one task, as they are counted from outside some times a second."""


def apply(*, others: int) -> None:
    """Set the limits of this process and of all that it will start.

    The kernel counts the threads of a user, not of a task; `others` says how many of them are not the task's. It sets
    no bound to root.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_NOFILE, OPEN_FILES)
    _lower(resource.RLIMIT_NPROC, others + MAX_THREADS)


def allow_data(bound: int | None) -> None:
    """Set how much private memory this process may use from now on; it may be changed again."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if bound is None else bound
    if hard != resource.RLIM_INFINITY and bound is not None:
        soft = min(bound, hard)
    with contextlib.suppress(ValueError, OSError):  # the kernel refuses nothing here but odd numbers
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _lower(kind: int, bound: int) -> None:
    soft, hard = resource.getrlimit(kind)
    most = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
    least = most if soft == resource.RLIM_INFINITY else min(most, soft)
    resource.setrlimit(kind, (least, most))

"""The body of a tree that is any executable."""

import os
import signal
from collections.abc import Sequence
from typing import Final

from tidewheel.worker.launcher.init import Missing
from tidewheel.worker.launcher.messages import Program

_ALL_SIGNALS: Final = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def start_command(program: Program, standard: Sequence[int]) -> int:
    """Start a command with these descriptors as stdin, stdout and stderr, and return its pid."""
    try:
        os.chdir(program.cwd)
    except OSError as error:
        raise Missing(f"cwd {program.cwd!r}: {error.strerror}") from error
    name = program.argv[0]
    try:
        return os.posix_spawn(
            _find(name, program.env["PATH"]),
            program.argv,
            program.env,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(standard)],
            setsid=True,
            setsigmask=[],
            setsigdef=_ALL_SIGNALS,
        )
    except OSError as error:
        raise Missing(f"{name!r} cannot be executed: {error.strerror}") from error


def _find(name: str, path: str) -> str:
    """Return where a program is, as a shell would look for it."""
    if "/" in name:
        return name
    for directory in path.split(":"):
        candidate = f"{directory or '.'}/{name}"
        if os.access(candidate, os.X_OK):
            return candidate
    raise Missing(f"{name!r} is not on the PATH")

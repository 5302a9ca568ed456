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
    refused: OSError | None = None
    for path in _candidates(program.argv[0], program.env["PATH"]):
        try:
            return _spawn(path, program, standard)
        except PermissionError as error:  # another place may have one that it may execute
            refused = error
        except OSError as error:
            refused = error
            break
    why = "it is not on the PATH" if refused is None else refused.strerror
    raise Missing(f"{program.argv[0]!r} cannot be executed: {why}")


def _spawn(path: str, program: Program, standard: Sequence[int]) -> int:
    return os.posix_spawn(
        path,
        program.argv,
        program.env,
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(standard)],
        setsid=True,
        setsigmask=[],
        setsigdef=_ALL_SIGNALS,
    )


def _candidates(name: str, path: str) -> list[str]:
    """Return where a program may be, as a shell would look for it."""
    if "/" in name:
        return [name]
    places = [f"{directory or '.'}/{name}" for directory in path.split(":")]
    return [place for place in places if os.access(place, os.X_OK)]

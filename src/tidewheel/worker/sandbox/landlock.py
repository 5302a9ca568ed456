"""Landlock: which files a task may touch, whatever its user may.

`standard`: read and execute everything but what was hidden, which is the worker's own (the database file, its keys);
write only to the scratch directory and to a few devices. Reading stays open because a program needs files that nobody
can list beforehand, and because whoever runs a worker chooses which of the machine's files its user can read. Writing
is closed because a job that leaves things behind meets itself at the next attempt; what is to stay is an output file.
`strict`: read only the system's programs and libraries, the interpreter, and the app, and of these nothing hidden.

Under either, the kernel also refuses to look into processes outside (environment, memory), to signal them, and to
mount. Landlock knows only what is allowed, so hiding a file means to allow everything beside it, at each level of its
path: what is created later in one of these directories cannot be read either.
"""

import ctypes
import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tidewheel.worker.sandbox.kernel import syscall

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_KNOWN_BITS: Final = ((1, 13), (2, 14), (3, 15), (5, 16))
"""From which version on the first so many rights are known."""
_TCP: Final = 3
_TCP_SINCE: Final = 4
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_SCOPES_SINCE: Final = 6

_MANY: Final = 5_000
"""A directory on the way to something hidden with more entries than this cannot be read at all."""
DEVICES: Final = (
    *(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")),
    *("/dev/dri", "/dev/kfd", "/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{number}" for number in range(16))),
)
SYSTEM: Final = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/opt", "/nix/store", "/dev", "/sys/devices/system/cpu"),
    *(
        "/etc/alternatives",
        "/etc/ld.so.cache",
        "/etc/ld.so.conf",
        "/etc/ld.so.conf.d",
        "/etc/localtime",
        "/etc/timezone",
    ),
    *("/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/services", "/etc/protocols"),
    *(
        "/etc/passwd",
        "/etc/group",
        "/etc/ssl",
        "/etc/ca-certificates",
        "/etc/pki",
        "/etc/mime.types",
        "/etc/locale.alias",
    ),
)


class Rule(NamedTuple):
    """What may be done beneath a path; the descriptor stands for the path even if it is renamed."""

    fd: int
    rights: int


def version() -> int:
    """Return which Landlock the kernel has; 0 for none."""
    try:
        return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def knows_tcp(known: int) -> bool:
    """Tell whether a version of Landlock can close TCP."""
    return known >= _TCP_SINCE


def reading(paths: Iterable[Path]) -> list[Rule]:
    """Return rules that let these paths and all beneath them be read and executed."""
    return list(_rules(paths, _READ))


def reading_but(paths: Iterable[Path], hidden: Sequence[Path]) -> list[Rule]:
    """Return the same, but for hidden paths and their companions, such as the log of a database."""
    targets = [path.resolve() for path in hidden]
    rules: list[Rule] = []
    for path in dict.fromkeys(path.resolve() for path in paths):
        if any(_covers(target, part) for target in targets for part in (path, *path.parents)):
            continue
        if any(path in target.parents for target in targets):
            rules += [*_rules([path], _READ_DIR), *reading(_beside(path, targets))]
        else:
            rules += reading([path])
    return rules


def writing(paths: Iterable[Path]) -> list[Rule]:
    """Return rules that let anything be done beneath these paths."""
    return list(_rules(paths, (1 << 16) - 1))


def reading_all_but(hidden: Sequence[Path]) -> list[Rule]:
    """Return rules that let everything be read but these paths and their companions, such as the log of a database."""
    return reading_but([Path("/")], hidden)


def restrict(rules: Iterable[Rule], *, tcp: bool, abstract_sockets: bool) -> None:
    """Confine this process and all that it will start, for good. Needs no-new-privileges."""
    known = version()
    rights = (1 << max(bits for since, bits in _KNOWN_BITS if known >= since)) - 1
    scopes = _SCOPE_SIGNALS | (0 if abstract_sockets else _SCOPE_ABSTRACT_SOCKETS)
    handled = struct.pack(
        "QQQ", rights, 0 if tcp or not knows_tcp(known) else _TCP, scopes if known >= _SCOPES_SINCE else 0
    )
    ruleset = syscall(_CREATE_RULESET, ctypes.create_string_buffer(handled), ctypes.c_size_t(24), ctypes.c_uint32(0))
    try:
        for rule in rules:
            attributes = struct.pack("=Qi", rule.rights & rights, rule.fd)
            syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.create_string_buffer(attributes), ctypes.c_uint32(0))
        syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _rules(paths: Iterable[Path], rights: int) -> Iterator[Rule]:
    for path in paths:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not on this machine, or gone since it was listed
            continue
        yield Rule(fd, rights if path.is_dir() else rights & _ON_FILES)


def _beside(directory: Path, hidden: Sequence[Path]) -> Iterator[Path]:
    """Yield what is in a directory and not hidden, going into those that have something hidden in them."""
    try:
        entries = list(directory.iterdir())
    except OSError:
        return
    for entry in entries if len(entries) <= _MANY else []:
        if entry.is_symlink() or any(_covers(path, entry) for path in hidden):
            continue
        if any(entry in path.parents for path in hidden):
            yield from _beside(entry, hidden)
        else:
            yield entry


def _covers(hidden: Path, entry: Path) -> bool:
    """Tell whether an entry is hidden itself or belongs to what is: `tide.db-wal` holds what `tide.db` will."""
    return entry.parent == hidden.parent and (entry.name == hidden.name or entry.name.startswith(hidden.name + "-"))

"""Namespaces: a tree of processes that sees and can signal only itself, and nothing of it outlives its root.

Root makes them outright; other users where the kernel lets them have a user namespace of their own. Where neither works
the tree is found through /proc instead (`tree`), which a task that is out to escape can outrun.
"""

import contextlib
import enum
import fcntl
import os
import socket
import struct
from pathlib import Path

from tidewheel.worker.sandbox import kernel
from tidewheel.worker.sandbox.limits import MAX_THREADS

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


class Ability(enum.Enum):
    """How namespaces can be had here."""

    NONE = 0
    USER = _NEWUSER | _NEWPID | _NEWNS
    ROOT = _NEWPID | _NEWNS


def probe() -> Ability:
    """Try what the kernel allows."""
    for ability in (Ability.ROOT, Ability.USER):
        if _works(ability.value):
            return ability
    return Ability.NONE


def fork(ability: Ability, *, strict: bool) -> int:
    """Fork, into namespaces of its own where that is possible; the child is their init, and must call `enter`."""
    if ability is Ability.NONE:
        return os.fork()
    return kernel.clone(ability.value | (_NEWNET | _NEWIPC if strict else 0))


def enter(ability: Ability, user: tuple[int, int], *, strict: bool) -> list[str]:
    """Furnish the namespaces that this process was forked into, and return the layers that are active."""
    if ability is Ability.NONE:
        return []
    layers = ["pid-namespace"]
    if ability is Ability.USER:
        _stay(*user)
        layers.append("user-namespace")
    with contextlib.suppress(OSError):
        Path("/proc/sys/kernel/pid_max").write_text(str(MAX_THREADS))  # one for each namespace since Linux 6.14
    if _mount("proc", "/proc"):
        layers.append("own-proc")
    if strict:
        _mount("tmpfs", "/run")  # has sockets of services, which Landlock does not guard
        _raise_loopback()
        layers.append("network-namespace")
    return layers


def _stay(uid: int, gid: int) -> None:
    """Be the same user in the new user namespace as outside."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _mount(kind: str, target: str) -> bool:
    try:
        kernel.mount("none", "/", None, _MS_REC | _MS_PRIVATE)
        kernel.mount(kind, target, kind, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    except OSError:  # a container may forbid it
        return False
    return True


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _works(flags: int) -> bool:
    try:
        pid = kernel.clone(flags)
    except OSError:
        return False
    if pid == 0:
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

"""Where a store may live: on a disk of this host, for the locks of a network file system cannot be trusted."""

from pathlib import Path
from typing import Final

from tidewheel.errors import StoreMismatch

MOUNTS: Final = Path("/proc/self/mounts")
NETWORKED: Final = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs",
     "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)  # fmt: skip
NETWORKED_FUSE: Final = (
    "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.glusterfs", "fuse.ceph", "fuse.davfs", "fuse.smb",
    "fuse.nfs", "fuse.juicefs", "fuse.goofys", "fuse.mount-s3", "fuse.blobfuse", "fuse.vmhgfs",
)  # fmt: skip


def refuse_network(path: Path) -> None:
    """Raise StoreMismatch if the file lies, or would lie, on a network file system."""
    folder = path.resolve().parent
    kind = file_system_of(folder, read_mounts())
    if kind is not None and (kind in NETWORKED or kind.startswith(NETWORKED_FUSE)):
        raise StoreMismatch(
            f"{path} lies on a network file system ({kind}), where SQLite's locks do not hold: "
            "use a disk of this host, or PostgreSQL to share a store between hosts"
        )


def file_system_of(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system a folder lies on, or None if the mounts do not tell."""
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:  # noqa: PLR2004 - source, mount point, type
            continue
        point = fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        if folder.is_relative_to(point) and (found is None or len(point) >= found[0]):
            found = len(point), fields[2]
    return found[1] if found else None


def read_mounts() -> str:
    """Return the mounts of this host; empty where the system does not tell."""
    try:
        return MOUNTS.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def log_of(path: Path) -> Path:
    """Return the write-ahead log of a store; it is beside the file itself, not beside a link to it."""
    file = path.resolve()
    return file.with_name(f"{file.name}-wal")


def leftover_log(path: Path) -> int:
    """Return the size of the write-ahead log of a store, 0 if there is none."""
    try:
        return log_of(path).stat().st_size
    except OSError:
        return 0

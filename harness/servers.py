"""Servers to break: each with a port of its own that it keeps when it is started again."""

import socket
import sys
from typing import Final

from harness.cluster import Cluster, WorkerProcess

HOST: Final = "127.0.0.1"


def server_command(database: str, port: int) -> list[str]:
    """Return the words that start a server without chores: those are the workers'."""
    return [
        *(sys.executable, "-m", "tidewheel.cli.main", "server", "--no-keeper"),
        *("--database", database, "--host", HOST, "--port", str(port)),
    ]


class Servers:
    """Some servers of one database."""

    def __init__(self, cluster: Cluster, database: str, size: int) -> None:
        self._cluster = cluster
        self._database = database
        self._ports = free_ports(size)
        self._processes: dict[int, WorkerProcess] = {}

    @property
    def urls(self) -> list[str]:
        return [f"http://{HOST}:{port}" for port in self._ports]

    @property
    def running(self) -> list[WorkerProcess]:
        return [process for process in self._processes.values() if process.running]

    def restore(self) -> None:
        """Start those that are not there; one whose port is not free yet ends at once, and is started the next time."""
        for port in self._ports:
            known = self._processes.get(port)
            if known is None or not known.running:
                command = server_command(self._database, port)
                self._processes[port] = self._cluster.launch(f"server-{port}", command)


def free_ports(number: int) -> list[int]:
    """Return ports that nobody listens on."""
    ends = [socket.socket() for _ in range(number)]
    try:
        for end in ends:
            end.bind((HOST, 0))
        return [end.getsockname()[1] for end in ends]
    finally:
        for end in ends:
            end.close()

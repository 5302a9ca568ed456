"""Servers are replaced while requests come in, and none of them is refused."""

import signal
import socket
import threading
from pathlib import Path

import httpx
import pytest

from tests.api.test_processes import COMMAND, tide
from tests.worker.running import until
from tidewheel.server.port_sharing import prefer_newest

pytestmark = pytest.mark.slow


class Hammer:
    """Submits one job after the other, and notes what went wrong: each over a connection of its own, and all over one
    that is kept until the server says that it closes it."""

    def __init__(self, url: str) -> None:
        self.ids: list[str] = []
        self.failures: list[str] = []
        self._url = url
        self._stop = threading.Event()
        self.told_to_leave = 0
        self._threads = [threading.Thread(target=self._strike, args=(keep,)) for keep in (False, False, True, True)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _strike(self, keep: bool) -> None:  # noqa: FBT001 - the argument of a thread
        headers = {} if keep else {"connection": "close"}
        with httpx.Client(base_url=self._url, timeout=30, headers=headers) as client:
            while not self._stop.is_set():
                try:
                    answer = client.post("/v1/jobs", json=COMMAND)
                    assert answer.status_code == 202, answer.text
                    self.ids.append(answer.json()["id"])
                    self.told_to_leave += keep and answer.headers.get("connection") == "close"
                except (httpx.TransportError, AssertionError) as error:
                    self.failures.append(f"{keep=} {error!r}")


@pytest.mark.proof
def test_servers_are_replaced_under_load_and_no_request_is_refused(tmp_path: Path, database: str) -> None:
    words = ("server", "--port", "0", "--workers", "2", "--no-keeper", "--database", database)
    with tide(tmp_path, "server", *words) as (server, client):
        until(lambda: len(server.children()) == 2, "both")
        hammer = Hammer(str(client.base_url).rstrip("/"))
        try:
            for turn in range(1, 4):
                before = {child.pid for child in server.children()}
                server.tell(signal.SIGHUP)
                until(lambda turn=turn: server.said.count("new servers: 2") == turn, "new ones")  # type: ignore[misc]
                until(lambda old=before: not old & {one.pid for one in server.children()}, "the old ones to end")  # type: ignore[misc]
                assert len(server.children()) == 2
        finally:
            hammer.stop()

        assert hammer.failures == []
        assert len(hammer.ids) > 20
        assert hammer.told_to_leave >= 3, "each restart sends whoever keeps a connection to the new servers"
        with httpx.Client(base_url=client.base_url, timeout=60, verify=False) as other:
            stored, cursor = set[str](), None
            while True:
                query = {"limit": "200"} | ({} if cursor is None else {"cursor": cursor})
                page = other.get("/v1/jobs", params=query).json()
                stored |= {job["id"] for job in page["jobs"]}
                if (cursor := page["next_cursor"]) is None:
                    break
    assert stored == set(hammer.ids)


def test_new_connections_come_to_the_newest_alone() -> None:
    def listening(port: int) -> socket.socket:
        end = socket.socket()
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        end.bind(("127.0.0.1", port))
        end.listen(100)
        end.settimeout(0)
        return end

    def accepted(end: socket.socket) -> int:
        number = 0
        try:
            while True:
                end.accept()[0].close()
                number += 1
        except BlockingIOError:
            return number

    old = listening(0)
    port = old.getsockname()[1]
    with old, listening(port) as new, listening(port) as newer:
        prefer_newest(new, 1, 2)
        for _ in range(40):
            socket.create_connection(("127.0.0.1", port)).close()
        assert (accepted(old), accepted(new) + accepted(newer)) == (0, 40)
        old.close()
        for _ in range(40):
            socket.create_connection(("127.0.0.1", port)).close()
        assert accepted(new) + accepted(newer) == 40

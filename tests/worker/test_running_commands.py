"""Commands and HTTP calls, as those see them who asked for them."""

import hashlib
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.worker.running import Scene, texts
from tidewheel.blobs import open_blobs
from tidewheel.model.job import JobSpec, Options
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.states import State
from tidewheel.sdk.job import Job
from tidewheel.tasks.definition import COMMAND

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "4", "--env", "SHARED=from the worker")
ONCE_MORE = RetryPolicy(max_attempts=2, delay=timedelta(milliseconds=1))


def command(scene: Scene, script: str, **args: Any) -> Job[Any]:
    """Ask for a command with all that its arguments may say."""
    spec = JobSpec(kind=COMMAND, args={"argv": ["sh", "-c", script], **args}, options=Options(retry=ONCE_MORE))
    [answer] = scene.store(lambda store: store.submit([spec]))
    return scene.app.job(answer.job_id)


def test_exit_code_0_is_a_success_with_the_end_of_the_output(scene: Scene) -> None:
    job = command(scene, "echo one; echo two >&2; echo three")

    assert job.result("60s") == {"exit_code": 0, "output": "one\nthree\n"}


@pytest.mark.parametrize(
    ("code", "reason", "attempts"), [(1, "error", 2), (75, "retry", 2), (9, "fatal", 1)], ids=["1", "75", "fatal"]
)
def test_other_exit_codes_say_whether_to_try_again(scene: Scene, code: int, reason: str, attempts: int) -> None:
    job = command(scene, f"exit {code}", fatal_exit_codes=[9])

    info = job.wait("60s")

    assert (info.state, info.token) == (State.DEAD, attempts)
    assert info.error is not None
    assert (info.error.reason, info.error.exit_code) == (reason, code)
    assert [attempt.error.exit_code for attempt in scene.attempts(job)] == [code] * attempts


def test_a_command_has_its_environment_its_input_and_its_place(scene: Scene) -> None:
    script = 'cat; echo "$OWN $SHARED ${TIDE_DATABASE:-none}"; pwd; echo "$TIDE_JOB_ID"'
    job = command(scene, script, env={"OWN": "own"}, stdin="input\n", cwd="/usr")

    assert job.wait("60s").state is State.SUCCEEDED
    assert texts(job, "stdout") == ["input", "own from the worker none", "/usr", str(job.id)]


def test_output_files_become_blobs(scene: Scene) -> None:
    job = command(scene, 'cd "$TIDE_OUTPUT_DIR"; mkdir deep; printf abc > deep/a.txt; ln -s /etc/passwd b')

    assert job.result("60s") == {"exit_code": 0, "output": ""}
    blobs = open_blobs(scene.blobs)
    [output] = scene.app.run(blobs.list_outputs(job.id))
    assert (output.token, output.name, output.size) == (1, "deep/a.txt", 3)
    assert scene.app.run(blobs.read(output.location, 10)) == b"abc"


def test_an_artifact_is_fetched_by_its_hash_and_run(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text('#!/bin/sh\necho "made of $1"\n')
    digest = scene.app.run(open_blobs(scene.blobs).put_file(tmp_path / "tool"))

    job = scene.app.command(["{artifact}", "parts"], artifact=digest)

    assert job.result("60s") == {"exit_code": 0, "output": "made of parts\n"}


def test_an_artifact_that_is_not_there_ends_the_job_with_the_reason(scene: Scene) -> None:
    digest = hashlib.sha256(b"never uploaded").hexdigest()

    info = scene.app.command(["{artifact}"], artifact=digest).wait("60s")

    assert (info.state, info.token) == (State.DEAD, 1), "another attempt cannot help"
    assert info.error is not None
    assert info.error.reason == "fatal"
    assert digest in info.error.message


def test_an_artifact_that_was_damaged_is_not_run(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho right\n")
    digest = scene.app.run(open_blobs(scene.blobs).put_file(tmp_path / "tool"))
    [kept] = [path for path in (scene.folder / "blobs").rglob(f"*{digest[8:]}*") if path.is_file()]
    kept.chmod(0o600)
    kept.write_text("#!/bin/sh\necho wrong\n")

    info = scene.app.command(["{artifact}"], artifact=digest).wait("60s")

    assert (info.state, info.token) == (State.DEAD, 1), "another attempt cannot help"
    assert info.error is not None
    assert info.error.reason == "fatal"
    assert "damaged" in info.error.message


def test_a_program_that_is_not_there_is_fatal(scene: Scene) -> None:
    info = scene.app.command(["no-such-program"]).wait("60s")

    assert (info.state, info.token) == (State.DEAD, 1)
    assert info.error is not None
    assert info.error.message == "'no-such-program' cannot be executed: it is not on the PATH"


def test_what_a_command_used_and_its_layers_are_recorded(scene: Scene) -> None:
    info = scene.app.command(["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]).wait("60s")

    assert info.usage is not None
    assert info.usage.cpu_seconds > 0
    assert info.usage.peak_rss_bytes > 100_000
    assert {"scratch", "environment", "no-new-privileges"} <= set(info.usage.isolation)


class Handler(BaseHTTPRequestHandler):
    """Answers 503 the first time, and then with what it was asked."""

    asked: list[dict[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(503 if len(self.asked) == 1 else 200)
        if len(self.asked) == 1:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the name is the library's


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    Handler.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_http_job_makes_its_call_and_tries_again(scene: Scene, server: ThreadingHTTPServer) -> None:
    job = scene.app.http("POST", f"http://127.0.0.1:{server.server_address[1]}/hook", json={"id": 1})

    answer = job.result("60s")

    assert (answer["status"], answer["body"]) == (200, '{"id":1}')
    assert [headers["idempotency-key"] for headers in Handler.asked] == [str(job.id)] * 2
    tokens = [headers["tide-fencing-token"].rpartition(":")[2] for headers in Handler.asked]
    assert tokens == ["1", "2"]
    assert scene.attempts(job)[0].error.reason == "retry"


def test_a_command_may_be_kept_further_apart_than_others_and_not_less_than_the_operator_wants(scene: Scene) -> None:
    strict, none = (command(scene, "exit 0", isolation=wish) for wish in ("strict", "none"))

    info = none.wait("60s")
    assert (info.state, info.token) == (State.DEAD, 1)
    assert info.error is not None
    assert info.error.message == "isolation: must be at least standard on this worker, not none"
    assert strict.wait("60s").state is State.SUCCEEDED
    [attempt] = scene.attempts(strict)
    assert {"network-namespace", "landlock-tcp"} & set(attempt.usage.isolation)


def test_an_operator_may_want_all_commands_to_be_strict(empty_scene: Scene) -> None:
    empty_scene.start("--slots", "1", "--inline", "0", "--least-isolation", "strict")

    job, less = command(empty_scene, "exit 0"), command(empty_scene, "exit 0", isolation="standard")

    assert job.wait("60s").state is State.SUCCEEDED
    [attempt] = empty_scene.attempts(job)
    assert {"network-namespace", "landlock-tcp"} & set(attempt.usage.isolation)
    assert less.wait("60s").state is State.DEAD

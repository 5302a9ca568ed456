"""Secrets reach the task and nothing else: no log, no error, no record, no file of the worker."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import SECRETS_KEY
from tests.worker.running import Scene, a_scene, texts
from tidewheel import RetryPolicy, secret
from tidewheel.model.job import JobSpec
from tidewheel.model.states import State
from tidewheel.sdk.job import Job

pytestmark = pytest.mark.slow
both_modes = pytest.mark.parametrize("mode", ["async", "plain"])
PASSWORD = 'correct horse\tbattery "staple" ünïcode'
KEPT = "stored, and only for tasks"
OF_ADA = "of ada and nobody else"
MASKED = "***"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("scene")
    (folder / "secrets" / "ada").mkdir(parents=True)
    (folder / "secrets" / "ada" / "password").write_text(OF_ADA + "\n")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("TIDE_SECRET_PASSWORD", PASSWORD)
        (folder / "key").write_text(SECRETS_KEY + "\n")
        patch.setenv("TIDE_SECRETS_KEY_FILE", str(folder / "key"))
        scene = stack.enter_context(a_scene(folder, "sqlite", None))
        scene.app.secrets.set("kept", KEPT)
        scene.start("--slots", "2", "--secrets", str(folder / "secrets"))
        patch.delenv("TIDE_SECRET_PASSWORD")
        patch.delenv("TIDE_SECRETS_KEY_FILE")
        yield scene


def submitted(scene: Scene, **fields: Any) -> Job[Any]:
    [answer] = scene.store(lambda store: store.submit([JobSpec(**fields)]))
    return Job(scene.app, answer.job_id)


def everything_stored(scene: Scene) -> bytes:
    """Return all that the store, the blobs and the worker's own log hold."""
    files = [
        path
        for path in scene.folder.rglob("*")
        if path.is_file() and "secrets" not in path.parts and path.name != "key"
    ]
    assert any(path.name == "tide.db" for path in files)
    return b"".join(path.read_bytes() for path in files)


def check_nowhere(scene: Scene) -> None:
    stored = everything_stored(scene)
    for word in (
        "horse\tbattery",
        "horse\\tbattery",
        "staple",
        "ünïcode",
        "only ada",
        "nobody else",
        "only for tasks",
        SECRETS_KEY,
    ):
        at = stored.find(word.encode())
        assert at < 0, stored[max(0, at - 100) : at + 100]


@both_modes
def test_a_task_gets_the_text_and_what_it_tells_of_it_is_masked(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"tell.{mode}", secret("password"), "return")
    info = job.wait("60s")
    assert info.result == {"length": len(PASSWORD), "it": MASKED, MASKED: [MASKED]}
    assert info.args == {"password": {"$secret": "password"}, "how": "return"}
    assert info.progress_message == f"with {MASKED}"
    assert sorted(texts(job)) == [
        MASKED,
        f"{MASKED} in two pieces",
        f"complained about {MASKED}",
        f"logged {MASKED}",
    ]
    checkpoint = scene.store(lambda store: store.checkpoint_of(job.id))
    assert checkpoint == f'{{"password":["{MASKED}"]}}'
    check_nowhere(scene)


@both_modes
def test_a_stored_secret_reaches_the_task_and_is_masked_like_all_others(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"tell.{mode}", secret("kept"), "return")
    assert job.wait("60s").result == {"length": len(KEPT), "it": MASKED, MASKED: [MASKED]}
    assert MASKED in texts(job)
    check_nowhere(scene)


@both_modes
@pytest.mark.parametrize("how", ["error", "long", "deep"])
def test_errors_are_masked_also_where_they_were_cut(scene: Scene, mode: str, how: str) -> None:
    info = scene.enqueue(f"tell.{mode}", secret("password"), how).wait("60s")
    assert info.state is State.DEAD
    assert info.error is not None
    if how == "error":
        assert info.error.message == f"ValueError: {MASKED} was refused"
        assert MASKED in (info.error.detail or "")
    check_nowhere(scene)


@both_modes
def test_large_results_are_masked_too(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"tell.{mode}", secret("password"), "large")
    assert job.wait("60s").result_location is not None
    assert job.result() == [MASKED] * 20_000
    check_nowhere(scene)


def test_a_command_gets_secrets_in_its_variables_arguments_and_input(scene: Scene) -> None:
    script = 'import os, sys; pw = os.environ["PW"]; print(len({pw, sys.argv[1], sys.stdin.read()}), pw)'
    job = scene.app.command(
        [sys.executable, "-c", script, secret("password")],
        env={"PW": secret("password"), "PLAIN": "x"},
        stdin=secret("password"),
    )
    info = job.wait("60s")
    assert (info.state, texts(job)) == (State.SUCCEEDED, [f"1 {MASKED}"])
    assert info.args["env"] == {"PW": {"$secret": "password"}, "PLAIN": "x"}
    check_nowhere(scene)


@both_modes
def test_a_secret_that_is_missing_is_one_clear_error_and_no_other_attempt(scene: Scene, mode: str) -> None:
    job = scene.enqueue(f"tell.{mode}", secret("no_such"), "return", using={"retry": RetryPolicy(max_attempts=5)})
    info = job.wait("60s")
    assert (info.state, info.failures) == (State.DEAD, 1)
    assert info.error is not None
    assert (info.error.reason, info.error.message) == (
        "fatal",
        "there is no secret 'no_such' for the tenant 'default' at this worker, and none is stored",
    )
    assert texts(job) == []


def test_a_tenant_gets_its_own_secrets_and_never_another_ones(scene: Scene) -> None:
    args = {"value": {"$secret": "password"}}
    ada, bob = (submitted(scene, kind="echo", args=args, tenant=tenant) for tenant in ("ada", "bob"))
    length = submitted(scene, kind="tell.async", args={"password": args["value"], "how": "return"}, tenant="ada")
    assert length.wait("60s").result["length"] == len(OF_ADA)
    assert ada.wait("60s").result == MASKED
    refused = bob.wait("60s")
    assert refused.error is not None
    assert "no secret 'password' for the tenant 'bob'" in refused.error.message
    check_nowhere(scene)


def test_what_a_parent_returned_cannot_ask_for_a_secret(scene: Scene) -> None:
    spy = {"$secret": "password"}
    first = scene.enqueue("build.reference")
    assert first.wait("60s").result == spy
    child = submitted(scene, kind="echo", args={"value": {"$result_of": str(first.id)}}, after=(first.id,))
    assert child.wait("60s").result == spy


@both_modes
def test_a_task_does_not_stumble_over_the_secrets_of_the_worker(scene: Scene, mode: str) -> None:
    assert scene.enqueue(f"stumble.{mode}").result("60s") == []


@pytest.mark.parametrize("name", ["secrets/ada/password", "key"])
def test_the_folder_of_secrets_and_the_key_are_hidden_from_commands(scene: Scene, name: str) -> None:
    path: Path = scene.folder / name
    job = scene.app.command(["cat", str(path)], retry=RetryPolicy(max_attempts=1))
    info = job.wait("60s")
    isolation = scene.attempts(job)[-1].usage.isolation
    if "landlock" not in isolation:
        pytest.skip("this kernel has no Landlock")
    assert info.state is State.DEAD
    assert "Permission denied" in " ".join(texts(job))

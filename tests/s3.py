"""A real S3 endpoint on this machine."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

KEY: Final = "TIDETESTKEY"
SECRET: Final = "tide-test-secret"
BUCKET: Final = "bucket"


class S3(NamedTuple):
    endpoint: str

    def url(self, prefix: str, bucket: str = BUCKET) -> str:
        return f"s3://{bucket}/{prefix}?endpoint={self.endpoint}&region=us-east-1"


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """An S3 endpoint with one bucket."""
    root = tmp_path_factory.mktemp("s3")
    (root / "data" / BUCKET).mkdir(parents=True)
    beside_python = Path(sys.executable).with_name("rclone")
    program = str(beside_python) if beside_python.exists() else shutil.which("rclone")
    assert program, "rclone comes with the extra dev"
    command = [program, "serve", "s3", "--addr", "127.0.0.1:0", "--auth-key", f"{KEY},{SECRET}"]
    command += ["--config", os.devnull, "--cache-dir", str(root / "cache"), str(root / "data")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            # Lines come until it is ready, and end if it fails.
            found = (
                re.search(r"Starting s3 server on \[(http://127\.0\.0\.1:\d+)/?\]", line) for line in server.stderr
            )
            ready = next(filter(None, found), None)
            assert ready, "rclone did not start"
            yield S3(ready[1])
        finally:
            server.terminate()


@pytest.fixture
def s3(s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """The endpoint, with good credentials in the environment."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return s3_server

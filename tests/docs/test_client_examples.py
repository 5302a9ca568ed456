"""The programs of the page about the client are run against a real `tide up`, and so is the protocol by hand."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api.test_processes import tide
from tests.docs.test_sdk_examples import run, save

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_programs_about_the_client_and_the_protocol_do_what_they_say(tmp_path: Path) -> None:
    ask, follow = save(tmp_path, "docs/how-to/use-the-client.md")
    with tide(tmp_path, "up", "up", "--slots", "1", "--port", "0") as (_, client):
        url = str(client.base_url).rstrip("/")

        assert run(tmp_path, ask, TIDE_URL=url).splitlines() == ["0", "stdout a", "stdout b", "300"]
        assert run(tmp_path, follow, TIDE_URL=url).splitlines() == ["cancelled", "cancelled seen enough"]
        if shutil.which("curl"):
            text = (ROOT / "docs/reference/worker-protocol.md").read_text()
            [script] = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
            environment = {**os.environ, "TIDE_URL": url}
            client.post("/v1/jobs", json={"kind": "by.hand"})
            done = subprocess.run(
                ["sh", "-ec", script], env=environment, capture_output=True, text=True, check=True, timeout=60
            )
            assert '"kind":"by.hand"' in done.stdout
            assert '"requeued":1' in done.stdout

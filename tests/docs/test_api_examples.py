"""The programs of the page about the API are run against a real `tide up`."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api.test_processes import tide
from tests.docs.test_sdk_examples import run, save

PAGE = "docs/how-to/use-the-api.md"
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_programs_about_the_api_do_what_they_say(tmp_path: Path) -> None:
    submit, look, bring = save(tmp_path, PAGE)
    with tide(tmp_path, "up", "up", "--slots", "1", "--port", "0") as (_, client):
        url = str(client.base_url)

        assert run(tmp_path, submit, TIDE_URL=url).splitlines() == [
            "202 True",
            "200 False",
            "0",
            "1000",
            "422 invalid /kind",
        ]
        assert run(tmp_path, look, TIDE_URL=url).splitlines() == [
            "1000",
            "1000 1000 False",
            "succeeded completed success",
            "end",
        ]
        assert run(tmp_path, bring, TIDE_URL=url).splitlines() == [
            "['it is noon']",
            "True",
            "2027-03-28T03:00:00+02:00 clocks go forward by 1h: 02:00 to 03:00 does not exist; runs right after it",
            "200 412 precondition-failed",
        ]
        if shutil.which("curl"):
            [script] = re.findall(r"```sh\n(.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)
            environment = {**os.environ, "TIDE_URL": url.rstrip("/")}
            done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
            assert json.loads(done.stdout)["job"]["state"] == "succeeded"

"""What programs print to descriptors that they inherit is of no run, and of the process neither."""

import re
import subprocess
import sys

PROGRAM = """
import logging, os, subprocess, sys
from tidewheel.logs.descriptors import keep_descriptors_apart

keep_descriptors_apart()
logging.basicConfig()
print("own output")
subprocess.run(["echo", "secret"])
subprocess.run(["sh", "-c", "echo secret >&2"])
subprocess.run(["head", "-c", "1000000", "/dev/zero"])
os.write(1, b"secret")
print("secret", file=sys.__stderr__, flush=True)
sys.stderr.write("own error\\n")
raise SystemExit("own end")
"""


def test_own_streams_go_on_and_of_all_else_only_the_amount_is_told() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout == "own output\n"
    told = [line for line in done.stderr.splitlines() if "bytes that are dropped" in line]
    assert re.search(r"have printed \d+ bytes", told[0])
    assert 2 <= len(told) <= 7, "ten times as much each time, not each piece"
    assert [line for line in done.stderr.splitlines() if line not in told] == ["own error", "own end"]
    assert "secret" not in done.stderr

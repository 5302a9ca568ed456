"""The app of a chaos run whose functions have no namespace around them."""

import os
import subprocess
import sys

from harness import bodies, witness
from harness.kinds import KINDS
from tidewheel import App
from tidewheel.tasks.context import Context

app = App(os.environ["CHAOS_DATABASE"])


def obey(ctx: Context, folder: str, seconds: float) -> int:
    """Leave all the work to a child."""
    return subprocess.run([sys.executable, witness.__file__, folder, str(seconds)], check=True).returncode + ctx.token


for _name, _body in (("nap", bodies.nap), ("obey", obey)):
    app.task(name=_name, timeout=KINDS[_name].timeout, retry=KINDS[_name].retry, isolation="none")(_body)

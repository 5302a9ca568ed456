"""The environment that tasks get: what a program needs to run, and nothing that the worker knows."""

from collections.abc import Mapping
from typing import Final

from tidewheel.model.trace import Trace
from tidewheel.tasks.context import JOB_ID_VARIABLE
from tidewheel.worker.sandbox.place import output_directory

_ALLOWED: Final = frozenset(
    {
        "LANG",
        "LANGUAGE",
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "PYTHONHOME",
        "PYTHONIOENCODING",
        "PYTHONPATH",
        "PYTHONPYCACHEPREFIX",
        "PYTHONUTF8",
        "PYTHONWARNINGS",
        "TZ",
        "VIRTUAL_ENV",
    }
)
_DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what of the worker's environment a task may see."""
    allowed = {name: value for name, value in environment.items() if name in _ALLOWED or name.startswith("LC_")}
    return {"PATH": _DEFAULT_PATH, **allowed}


def of_job(
    *, job_id: str, attempt: int, epoch: int, token: int, scratch: str, trace: Trace | None = None
) -> dict[str, str]:
    """Return what a task is told about its job, and where it may write."""
    named = {} if trace is None else {"TRACEPARENT": trace.traceparent, "TRACESTATE": trace.tracestate}
    return {
        **{name: value for name, value in named.items() if value is not None},
        "HOME": scratch,
        "TMPDIR": scratch,
        JOB_ID_VARIABLE: job_id,
        "TIDE_ATTEMPT": str(attempt),
        "TIDE_FENCING_TOKEN": f"{epoch}:{token}",
        "TIDE_OUTPUT_DIR": output_directory(scratch),
    }

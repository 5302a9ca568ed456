"""The kind of a task that was given no name: where its function is, in the form `module.function`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidewheel.errors import Invalid

_LOCALS = "<locals>."


def kind_of(function: Callable[..., Any]) -> str:
    """Return the kind of a function, the same in the program that enqueues and in the one that works."""
    name = str(getattr(function, "__qualname__", "")).rpartition(_LOCALS)[2]
    if not name or "<" in name:
        raise Invalid("name", f"{function!r} has no name of its own: give it one with name=…")
    module = _main_module() if function.__module__ == "__main__" else function.__module__
    return f"{module}.{name}" if module else name


def _main_module() -> str:
    """Return the name by which the main program would be imported; nothing in a session without a file."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return "" if file is None else Path(file).stem

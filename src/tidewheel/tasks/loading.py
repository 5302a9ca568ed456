"""Finding the app that a worker runs, named as `package.module:attribute`. Only processes for user code do this."""

import importlib
import os
import sys
import traceback
from types import ModuleType
from typing import Any, Protocol, cast

from tidewheel.errors import Invalid
from tidewheel.tasks.registry import Registry


class HasRegistry(Protocol):
    """What a worker needs of an app."""

    @property
    def registry(self) -> Registry:
        """The tasks by kind."""


def load_registry(app: str) -> HasRegistry:
    """Import the app that `package.module:attribute` names, looking in the current directory first."""
    module_name, _, path = app.partition(":")
    if not (_is_dotted(module_name) and _is_dotted(path)):
        raise Invalid("app", f"must be written like package.module:attribute, not {app!r}")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - entries of sys.path are text
        sys.path.insert(0, here)
    found = _attribute(_module(module_name), path)
    if not isinstance(getattr(found, "registry", None), Registry):
        raise Invalid("app", f"{app} is not an app, but of type {type(found).__name__}")
    return cast("HasRegistry", found)


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise Invalid("app", f"there is no module {error.name}") from None
        raise Invalid("app", _failed(name, error)) from error
    except BaseException as error:  # a module may also call sys.exit
        raise Invalid("app", _failed(name, error)) from error


def _failed(name: str, error: BaseException) -> str:
    return f"importing {name} failed: {traceback.format_exception_only(error)[-1].strip()}"


def _attribute(module: ModuleType, path: str) -> Any:
    found: Any = module
    for step in path.split("."):
        if not hasattr(found, step):
            raise Invalid("app", f"{module.__name__} has no attribute {path}")
        found = getattr(found, step)
    return found

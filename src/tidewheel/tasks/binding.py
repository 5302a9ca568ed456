"""How arguments get from a call to the store and back to the function: by name, as JSON, restored by annotation.

What is annotated comes back as it went: dates, UUIDs, decimals, enums, sets, tuples, dataclasses and msgspec structs
are JSON on the way. What is not annotated must be plain JSON, for else a date would silently arrive as text.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeGuard, get_args, get_origin, get_type_hints

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_json
from tidewheel.model.dependency import REFERENCE
from tidewheel.model.outcome import MAX_LARGE_RESULT
from tidewheel.model.secret import fill_secrets, find_secrets
from tidewheel.tasks.context import Context
from tidewheel.tasks.signals import Fatal

Function = Callable[..., Any]
ENDLESS: Final = "must not be nested so deep, or contain itself"
_BY_POSITION: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CONTAINERS: Final = (list, dict, Collection, Iterable, Mapping, Sequence)
_PLAIN: Final = (Any, object, None, type(None), bool, int, float, str, *_CONTAINERS)
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


def context_of(function: Function) -> str | None:
    """Return the parameter that takes the `Context`, if there is one; it must be the first."""
    hints = _hints(function)
    parameters = list(inspect.signature(function).parameters.values())
    takers = [p.name for p in parameters if _is_context(hints.get(p.name, p.annotation))]
    if not takers:
        return None
    if takers != [parameters[0].name] or parameters[0].kind not in _BY_POSITION:
        raise Invalid(takers[-1], f"the Context must be the first parameter of {_name(function)}, and the only such")
    return takers[0]


def parameters_of(function: Function) -> tuple[str, ...] | None:
    """Return the names of the arguments that may be stored for a function; None if it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    context = context_of(function)
    return tuple(p.name for p in parameters if p.name != context)


class Caller:
    """A task's function, as those see it who ask for a call and those who make it."""

    def __init__(self, function: Function, context: str | None = None) -> None:
        self._function = function
        self._context = context
        self.wants_context: Final = context is not None
        parameters = list(inspect.signature(function).parameters.values())
        free = [p for p in parameters if p.name != context]
        _refuse_unstorable(function, free)
        self._signature = inspect.Signature(free)
        self._types = _types(function, free)
        self._open = next((p.name for p in free if p.kind is p.VAR_KEYWORD), None)
        named = [p for p in free if p.kind is not p.VAR_KEYWORD]
        self._by_position = sum(p.kind in _BY_POSITION for p in named)
        self._keywords = tuple(p.name for p in named if p.kind is p.KEYWORD_ONLY)
        self._decode: Callable[[str | bytes], Any] = msgspec.json.Decoder(_shape(function, named, self._types)).decode
        self._returns = _restorable(_hints(function).get("return", Any))
        self._returns_plain = is_plain(self._returns)

    # Asking for a call

    @property
    def free(self) -> tuple[str, ...]:
        """The parameters that a caller may give by name or position."""
        return tuple(name for name in self._signature.parameters if name != self._open)

    def whole(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored arguments together with the defaults of those that were not given."""
        free = self._signature.parameters.values()
        defaults = {p.name: p.default for p in free if p.default is not p.empty and p.name not in given}
        return {**given, **{name: self._stored(name, value) for name, value in defaults.items()}}

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name, ready to be stored, or raise Invalid."""
        try:
            bound = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise Invalid("args", f"{_name(self._function)}(): {error}") from None
        given = dict(bound)
        if self._open is not None:
            given |= given.pop(self._open, {})
            if self._context in given:
                raise Invalid("args", f"{self._context} is the Context, which whoever runs the task provides")
        return {name: self._stored(name, value) for name, value in given.items()}

    def _stored(self, name: str, value: Any) -> Any:
        kind = self._types.get(name) or self._types.get(self._open or "", Any)
        try:
            if stands_for_result(value):
                return value
            stored = value if is_plain(kind) else msgspec.to_builtins(value, str_keys=True)
            _check_fits(stored, kind)
        except (TypeError, *_UNREADABLE) as error:
            raise Invalid("args", f"{name}: {_why(error)}") from None
        return stored

    # Making it

    def call(self, context: Context | None, args: str | bytes) -> Any:
        """Call the function with stored arguments; a coroutine function answers with its coroutine.

        Raises Fatal if they do not fit, for another attempt would not make them fit.
        """
        if self._open is not None:
            return self._call_open(context, args)
        try:
            values = msgspec.structs.astuple(self._decode(args))
        except _UNREADABLE as error:
            raise Fatal(f"the arguments do not fit {_name(self._function)}: {_why(error)}") from error
        if self._keywords:
            keywords = dict(zip(self._keywords, values[self._by_position :], strict=True))
            values = values[: self._by_position]
        else:
            keywords = {}
        if self._context is None:
            return self._function(*values, **keywords)
        return self._function(context, *values, **keywords)

    def _call_open(self, context: Context | None, args: str | bytes) -> Any:
        """Call a function that takes any named arguments."""
        try:
            given = msgspec.json.decode(args, type=dict[str, Any])
            other = self._types[self._open or ""]
            values = {n: msgspec.convert(v, self._types.get(n, other), str_keys=True) for n, v in given.items()}
            self._signature.bind(**values)
        except (TypeError, *_UNREADABLE) as error:
            raise Fatal(f"the arguments do not fit {_name(self._function)}: {_why(error)}") from error
        return self._function(**values) if self._context is None else self._function(context, **values)

    # Its result

    def result_text(self, result: Any) -> str | None:
        """Return what the function returned as JSON text, None for None; raises Fatal if that cannot be."""
        if result is None:
            return None
        if self._returns_plain:
            return result_text(result)
        try:
            return result_text(msgspec.to_builtins(result, str_keys=True))
        except (TypeError, *_UNREADABLE) as error:
            raise Fatal(f"the result cannot be stored: {_why(error)}") from None

    def restore(self, result: Any) -> Any:
        """Return a stored result as the function had returned it, as far as its annotation tells."""
        try:
            return msgspec.convert(result, self._returns, str_keys=True)
        except _UNREADABLE:
            return result  # it was stored by another version of the function


def result_text(value: Any) -> str:
    """Return the JSON text of a result that is JSON already; raises Fatal if it is not, or is too large."""
    try:
        return check_json("result", value, max_bytes=MAX_LARGE_RESULT)
    except Invalid as error:
        raise Fatal(f"the result cannot be stored: {error.why}") from None


def stands_for_result(value: object) -> TypeGuard[dict[str, Any] | list[Any]]:
    """Tell whether an argument stands for the result of another job, or for a list of such."""
    if isinstance(value, list):
        return bool(value) and all(map(stands_for_result, value))
    return isinstance(value, dict) and value.keys() == {REFERENCE}


def _check_fits(stored: Any, kind: Any) -> None:
    try:
        msgspec.convert(stored, kind, str_keys=True)
    except msgspec.ValidationError:
        if not find_secrets([stored]):
            raise
        msgspec.convert(without_secrets(stored), kind, str_keys=True)


def without_secrets(value: Any) -> Any:
    """Return a value to check in place of one that has secrets in it: with some text where each of them will be."""
    names = find_secrets([value])
    return fill_secrets(value, dict.fromkeys(names, "secret")) if names else value


def is_plain(kind: Any) -> bool:
    """Tell whether values of a type are JSON already, so that nothing needs to be turned into something else."""
    if kind in _PLAIN:
        return True
    origin = get_origin(kind)
    if origin is Literal:
        return all(type(choice) in (str, int, bool, type(None)) for choice in get_args(kind))
    if origin in (dict, Mapping) and get_args(kind)[0] is not str:
        return False
    return (origin in _CONTAINERS or _is_union(origin)) and all(map(is_plain, get_args(kind)))


# Looking at functions


def _hints(function: Function) -> dict[str, Any]:
    """Return the annotations, also those written as text; one that names something unknown counts as none."""
    target = inspect.unwrap(function)
    try:
        return get_type_hints(target, include_extras=True)
    except Exception:  # noqa: BLE001 - evaluating an annotation may raise anything
        return {name: _resolve(target, hint) for name, hint in getattr(target, "__annotations__", {}).items()}


def _resolve(function: Function, hint: Any) -> Any:
    if not isinstance(hint, str):
        return hint
    if hint.split(".")[-1] == Context.__name__:
        return Context  # also where it is imported for the type checker alone
    try:
        return get_type_hints(type("One", (), {"__annotations__": {"it": hint}}), function.__globals__)["it"]
    except Exception:  # noqa: BLE001 - as above
        return Any


def _is_context(hint: Any) -> bool:
    return hint is Context or (isinstance(hint, str) and hint.split(".")[-1] == Context.__name__)


def _is_union(origin: Any) -> bool:
    return getattr(origin, "__name__", None) in ("UnionType", "Union")


def _refuse_unstorable(function: Function, parameters: Sequence[inspect.Parameter]) -> None:
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        raise Invalid("function", f"{_name(function)} takes *args, but arguments are stored by name: take a list")
    if {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_KEYWORD} <= kinds:
        raise Invalid("function", f"{_name(function)} takes both positional-only arguments and **kwargs")


def _types(function: Function, parameters: Sequence[inspect.Parameter]) -> dict[str, Any]:
    hints = _hints(function)
    return {p.name: _checked(function, p.name, hints.get(p.name, Any)) for p in parameters}


def _checked(function: Function, name: str, kind: Any) -> Any:
    try:
        msgspec.json.Decoder(kind)
    except (TypeError, NameError, RecursionError) as error:
        why = f"values of this annotation cannot be told apart in JSON ({error})"
        raise Invalid("function", f"{_name(function)}, parameter {name}: {why}") from None
    return kind


def _restorable(kind: Any) -> Any:
    try:
        msgspec.json.Decoder(kind)
    except (TypeError, NameError, RecursionError):
        return Any
    return kind


def _shape(function: Function, parameters: Sequence[inspect.Parameter], types: Mapping[str, Any]) -> type:
    """Return the struct that arguments are decoded to: it checks names and types at once, and fills in defaults."""
    fields: list[Any] = [
        (p.name, types[p.name])
        if p.default is p.empty
        else (p.name, types[p.name], msgspec.field(default_factory=_constant(p.default)))
        for p in parameters
    ]
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True, module=function.__module__)


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _name(function: Function) -> str:
    return getattr(function, "__qualname__", repr(function))


def _why(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return ENDLESS
    return str(error).replace(" - at `$.", ": in `").replace(" - at `$`", "")

"""Sizes are watched: what grows past these is split, or allowed by name with a reason."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[2] / "src"
FILE_LINES: Final = 400
BODY_LINES: Final = 40
PARAMETERS: Final = 6

ALLOWED: Final[dict[str, str]] = {}
"""What may be larger, as ``path`` or ``path:function``, and why."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _body_lines(function: Function) -> int:
    """Count the lines of a body, its docstring left out."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _parameters(function: Function) -> int:
    """Count what a caller may give by position, leaving out self; keyword-only parameters explain themselves."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _parsed(text: str) -> ast.Module:
    """Return the tree of a program; Python 3.11 may take a collection of garbage in between for an error of its own."""
    try:
        return ast.parse(text)
    except SystemError:
        return ast.parse(text)


def _outliers(path: Path) -> Iterator[str]:
    text = path.read_text()
    place = path.relative_to(SOURCE).as_posix()
    if (lines := text.count("\n")) > FILE_LINES and place not in ALLOWED:
        yield f"{place}: {lines} lines, {FILE_LINES} allowed"
    for function in _functions(_parsed(text)):
        if f"{place}:{function.name}" in ALLOWED:
            continue
        if (lines := _body_lines(function)) > BODY_LINES:
            yield f"{place}:{function.lineno} {function.name}: body of {lines} lines, {BODY_LINES} allowed"
        if (count := _parameters(function)) > PARAMETERS:
            yield f"{place}:{function.lineno} {function.name}: {count} parameters, {PARAMETERS} allowed"


def test_files_functions_and_parameter_lists_stay_small() -> None:
    found = [outlier for path in sorted(SOURCE.rglob("*.py")) for outlier in _outliers(path)]

    assert found == []


def test_every_allowance_is_still_needed_and_has_a_reason() -> None:
    for place, reason in ALLOWED.items():
        assert (SOURCE / place.partition(":")[0]).exists(), place
        assert reason


@pytest.mark.parametrize(
    ("code", "lines", "parameters"),
    [
        ('def f(a, b, /, c, *, d):\n    """Doc."""\n    x = 1\n    return x', 2, 3),
        ("class C:\n    def f(self, a):\n        return a", 1, 1),
        ('def f():\n    """Only a docstring."""', 0, 0),
    ],
)
def test_the_watcher_counts_right(code: str, lines: int, parameters: int) -> None:
    [function] = _functions(ast.parse(code))

    assert (_body_lines(function), _parameters(function)) == (lines, parameters)

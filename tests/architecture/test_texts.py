"""No file knows the machine or the registry it was written with."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

# Hidden folders are caches and environments, apart from those named here.
HIDDEN_BUT_OURS: Final = {".ci", ".github"}
GENERATED: Final = {"__pycache__", "build", "dist", "node_modules"}

MACHINE_PATH: Final = re.compile(r"(?<![\w.~/>}-])/(?:home|Users|root|work|workspace)/\w")
PACKAGE_INDEX: Final = re.compile(r"pypi[.]org|python[h]osted|index-ur[l]|find-link[s]")


def _texts() -> Iterator[tuple[Path, str]]:
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in GENERATED and (name[0] != "." or name in HIDDEN_BUT_OURS)]
        for name in files:
            path = Path(folder, name)
            if name == ".git":  # of a second work tree: it says where the first is
                continue
            try:
                yield path, path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, FileNotFoundError):  # not a text, or a cache that another test removed
                continue


def test_no_text_contains_a_path_of_a_machine_or_a_package_index() -> None:
    here = str(ROOT) if len(ROOT.parts) > 2 else None
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line) or PACKAGE_INDEX.search(line) or (here is not None and here in line)
    ]

    assert found == []


@pytest.mark.parametrize("constraints", ["constraints.txt", "bench/rivals/constraints.txt"])
def test_constraints_are_exact_versions_and_nothing_else(constraints: str) -> None:
    lines = (ROOT / constraints).read_text().splitlines()

    assert [line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.]+", line)] == []

"""Secrets that are longer than the pieces of a long line."""

import random
import string

import pytest

from tests.logs.scene import Scene
from tidewheel.logs.lines import CUT, LineCutter
from tidewheel.logs.masks import Masks
from tidewheel.logs.quota import Tail

LETTERS = random.Random(7)


def _secret(size: int) -> str:
    return "".join(LETTERS.choices(string.ascii_letters, k=size))


@pytest.mark.parametrize("how", ["stdout", "log"])
@pytest.mark.parametrize("chunk", [4096, 1_000_000])
@pytest.mark.parametrize(
    ("before", "size"), [(15_000, 5000), (0, 17_000), (15_000, 17_000), (16_000, 65_000), (100, 3000)]
)
async def test_no_part_of_a_long_secret_is_shown(scene: Scene, how: str, chunk: int, before: int, size: int) -> None:
    secret = _secret(size)
    run = scene.run(mask=[secret])
    text = "0" * before + secret + "1" * 20_000
    if how == "log":
        run.log("info", text)
    for start in range(0, len(text), chunk) if how == "stdout" else ():
        run.output("stdout", text[start : start + chunk].encode())

    shown = "".join(line.removesuffix("… [line cut]") for line in await scene.ended(run))

    assert shown == "0" * before + "***" + "1" * 20_000


def test_a_line_that_is_a_long_secret_is_one_line() -> None:
    secret = _secret(17_000)

    assert LineCutter(Masks([secret]).raw).feed(secret.encode() + b"\n") == [secret]


def test_bytes_that_are_no_text_do_not_have_a_secret_cut() -> None:
    cutter = LineCutter((b"hunter2!",), max_line=12)

    assert cutter.feed(b"0000hunter2!\x80\x80\n")[0].startswith("0000hunter2!")


@pytest.mark.parametrize("end", ["", "\n2\n"])
def test_the_last_lines_do_not_begin_within_a_long_secret(end: str) -> None:
    secret = _secret(65_000)
    tail = Tail(Masks([secret]))
    tail.take_raw(0, "stdout", ("0" * 40_000 + secret + "1" * 1000 + end).encode())

    shown = "".join(line.text.removesuffix(CUT) for line in tail.end()[1])

    assert not any(letter in shown for letter in string.ascii_letters)

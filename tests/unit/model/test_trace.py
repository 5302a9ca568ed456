"""Headers of W3C Trace Context: what is well written is taken in the form of version 00, all else is ignored."""

import pytest

from tidewheel.model.trace import MAX_STATE, Trace, trace_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (GOOD, GOOD),
        (f" {GOOD}\t", GOOD),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-03", f"00-{TRACE}-{SPAN}-03"),
        (f"00-{TRACE}-{SPAN}-fd", GOOD),  # bits that nobody knows are cleared
        (f"01-{TRACE}-{SPAN}-01-what-may-come", GOOD),  # of a later version what is known is taken
        (f"cc-{TRACE}-{SPAN}-01", GOOD),
    ],
)
def test_what_is_well_written_is_taken(given: str, taken: str) -> None:
    assert trace_of(given) == Trace(taken)


@pytest.mark.parametrize(
    "given",
    [
        None,
        "",
        "nonsense",
        GOOD.upper(),
        GOOD[:-1],
        f"{GOOD}-more",  # version 00 has nothing more
        f"{GOOD}0",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0x",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE[:-1]}٣-{SPAN}-01",
        f"00_{TRACE}_{SPAN}_01",
    ],
)
def test_what_is_not_is_no_trace_and_no_error(given: str | None) -> None:
    assert trace_of(given, "vendor=1") is None


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (None, None),
        ("", None),
        ("rojo=00f067aa0ba902b7, congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        ("tenant@vendor=1,,a*b/c=2", "tenant@vendor=1,a*b/c=2"),
        ("same=1,same=2", None),
        ("Upper=1", None),
        ("no-value", None),
        ("a=b=c", None),
        ("a=\x07", None),
        (",".join(f"k{number}=v" for number in range(33)), None),
        ("a=" + "x" * 250 + ",b=" + "y" * 250 + ",c=zzzzzzzz", None),
    ],
)
def test_a_state_that_is_not_well_written_is_left_out_without_its_trace(given: str | None, taken: str | None) -> None:
    assert trace_of(GOOD, given) == Trace(GOOD, taken)
    assert taken is None or len(taken) <= MAX_STATE

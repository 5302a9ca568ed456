"""A command may ask for more isolation than its worker demands, and never for less."""

import pytest

from tidewheel.errors import Invalid
from tidewheel.tasks.definition import Isolation
from tidewheel.worker.floor import check_floor, parse_isolation, usual_isolation


@pytest.mark.parametrize(
    ("least", "usual"), [("none", "standard"), ("standard", "standard"), ("strict", "strict")], ids=str
)
def test_who_asks_for_nothing_has_the_standard_or_more_if_more_is_demanded(least: Isolation, usual: str) -> None:
    assert usual_isolation(least) == usual


@pytest.mark.parametrize(
    ("least", "allowed"),
    [("none", {"none", "standard", "strict"}), ("standard", {"standard", "strict"}), ("strict", {"strict"})],
    ids=["none", "standard", "strict"],
)
def test_less_than_is_demanded_is_refused(least: Isolation, allowed: set[Isolation]) -> None:
    wishes: tuple[Isolation, ...] = ("none", "standard", "strict")
    for wanted in wishes:
        if wanted in allowed:
            assert check_floor(wanted, least) == wanted
        else:
            with pytest.raises(Invalid, match=f"isolation: must be at least {least} on this worker, not {wanted}"):
                check_floor(wanted, least)


def test_a_setting_that_names_no_isolation_is_refused() -> None:
    assert parse_isolation("strict", "least-isolation") == "strict"
    with pytest.raises(Invalid, match="least-isolation: must be one of none, standard, strict, not 'some'"):
        parse_isolation("some", "least-isolation")

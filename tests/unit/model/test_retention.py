"""How long finished jobs are kept, and how long others may wait, as people write it."""

from datetime import timedelta

import pytest

from tidewheel.errors import Invalid
from tidewheel.model.retention import KEEP, MAX_AGE, Rule, Upkeep, check_age, longest, parse_upkeep, rules_of
from tidewheel.model.states import FINAL, State

DAY = timedelta(days=1)


def test_successes_are_kept_for_a_week_and_all_else_for_a_month() -> None:
    assert {**dict.fromkeys(FINAL, 30 * DAY), State.SUCCEEDED: 7 * DAY} == KEEP
    assert parse_upkeep([], "14d") == Upkeep()
    assert MAX_AGE == 14 * DAY


def test_ages_are_given_for_states_and_for_states_of_kinds() -> None:
    upkeep = parse_upkeep(["dead=90d", "mail:send:succeeded=12h", "mail:send:dead=1d"], "off")
    assert upkeep.keep == {**KEEP, State.DEAD: 90 * DAY}
    assert upkeep.kinds == {"mail:send": {State.SUCCEEDED: DAY / 2, State.DEAD: DAY}}
    assert upkeep.max_age is None


@pytest.mark.parametrize(
    "text",
    ["", "dead", "dead=", "dead=soon", "dead=1", "dead=0s", "running=5d", ":dead=1d", "a b:dead=1d", "dead=9999w"],
)
def test_bad_ages_to_keep_are_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_upkeep([text], "14d")
    assert caught.value.field == "keep"


@pytest.mark.parametrize("text", ["", "never", "0s", "-1d", "3", "99999w"])
def test_bad_ages_to_wait_are_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_upkeep([], text)
    assert caught.value.field == "max_age"


def test_a_kind_s_own_age_is_an_exception_from_the_rule() -> None:
    rules = rules_of({State.DEAD: DAY}, {"a": {State.DEAD: 2 * DAY}, "b": {State.EXPIRED: DAY}})
    assert rules == [
        Rule(State.DEAD, DAY, None, ("a",)),
        Rule(State.DEAD, 2 * DAY, "a", ()),
        Rule(State.EXPIRED, DAY, "b", ()),
    ]
    assert longest(rules, [State.DEAD]) == 2 * DAY
    assert longest(rules, [State.DEAD, State.EXPIRED]) is None, "what is not named is kept for ever"


def test_states_and_ages_that_cannot_be_are_refused() -> None:
    with pytest.raises(Invalid, match="running"):
        rules_of({State.RUNNING: DAY}, {})
    with pytest.raises(Invalid, match="negative"):
        rules_of({}, {"a": {State.DEAD: -DAY}})
    with pytest.raises(Invalid, match="max_age"):
        check_age("max_age", timedelta(0))

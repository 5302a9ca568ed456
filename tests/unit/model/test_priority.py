import pytest

from tidewheel.errors import Invalid
from tidewheel.model.priority import Priority, parse_priority


def test_the_most_urgent_priority_sorts_first() -> None:
    assert sorted([Priority.LOW, Priority.HIGH, Priority.MEDIUM]) == [Priority.HIGH, Priority.MEDIUM, Priority.LOW]


def test_the_stored_numbers_never_change() -> None:
    assert {priority.name: priority.value for priority in Priority} == {"HIGH": 0, "MEDIUM": 1, "LOW": 2}


@pytest.mark.parametrize("priority", Priority)
def test_a_priority_is_read_from_its_name_its_number_and_itself(priority: Priority) -> None:
    for value in (priority, priority.value, priority.name, priority.name.lower(), priority.name.title()):
        assert parse_priority(value) is priority


@pytest.mark.parametrize("value", ["urgent", "", "0", " high", 3, -1, True, False, 1.0, None, [], {}])
def test_what_is_no_priority_is_refused_with_the_choices(value: object) -> None:
    with pytest.raises(Invalid, match=r"^priority: must be one of high \(0\), medium \(1\), low \(2\), not "):
        parse_priority(value)  # type: ignore[arg-type]

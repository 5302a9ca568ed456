from datetime import UTC, datetime, timedelta, timezone, tzinfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.checks import (
    MAX_DELAY,
    check_delay,
    check_duration,
    check_instant,
    check_key,
    check_labels,
    check_name,
    check_text,
    check_window,
    clean_text,
    duration_text,
    parse_duration,
)

HOUR = timedelta(hours=1)
NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)


# Names and keys


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "billing.tasks.send_invoice",
        "_private.task",
        "eu-west/priority:1",
        "user@example.org",
        "7days",
        "größe.berechnen",
        "задача",
        "発送",
        "हिन्दी",
        "x" * 200,
    ],
)
def test_a_sensible_name_is_accepted_as_it_is(name: str) -> None:
    assert check_name("kind", name) == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "must not be empty"),
        ("x" * 201, "must have at most 200 characters, not 201"),
        ("a\0b", "must not contain the NUL character"),
        ("a\x1bb", "must not contain the control character U+001B"),
        ("a\nb", "must not contain the control character U+000A"),
        ("a\x85b", "must not contain the control character U+0085"),
        ("a\ud800", "must not contain half of a surrogate pair"),
        (" a", "must not begin or end with a blank"),
        ("a\u00a0", "must not begin or end with a blank"),
        ("a b", "must consist of letters, digits and the marks . _ : / @ -, without ' '"),
        ("mod.<locals>.f", "must consist of letters, digits and the marks . _ : / @ -, without '<'"),
        ("a,b", "must consist of letters, digits and the marks . _ : / @ -, without ','"),
        ("-rf", "must begin with a letter, a digit or _, not with '-'"),
        ("e\u0301", "must have its accents composed with their letters (Unicode NFC)"),
        ("\u0301e", "must begin with a letter, a digit or _, not with '\u0301'"),
        (7, "must be text, not int"),
        (None, "must be text, not nothing"),
    ],
)
def test_a_bad_name_is_refused_with_its_reason(name: object, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_name("kind", name)

    assert (caught.value.field, caught.value.why) == ("kind", why)


@given(st.text(max_size=210))
def test_what_is_a_name_can_be_stored_listed_and_spelled_in_one_way(text: str) -> None:
    try:
        name = check_name("kind", text)
    except Invalid:
        return
    assert name == text
    assert 1 <= len(name) <= 200
    assert not set(name) & set("\0 ,;=\"'?&#%<>|*$`\\\n\t")
    assert name.encode().decode() == name


@pytest.mark.parametrize("key", ["order 17, retry #2", "a=b&c", "👩\u200d💻", "x" * 200])
def test_a_key_may_be_any_line(key: str) -> None:
    assert check_key("idempotency_key", key) == key


@pytest.mark.parametrize("key", ["", " a", "a ", "a\0", "a\nb", "a\u2028b", "\udfff", "x" * 201, 1, None, b"a"])
def test_a_key_that_is_not_one_visible_line_is_refused(key: object) -> None:
    with pytest.raises(Invalid, match=r"^idempotency_key: must "):
        check_key("idempotency_key", key)


# Text


@pytest.mark.parametrize("text", ["", "two\nlines\r\n\tindented", " blanks stay ", "x" * 50, "é 👩\u200d💻"])
def test_text_for_people_may_have_several_lines(text: str) -> None:
    assert check_text("description", text, 50) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x" * 51, "must have at most 50 characters, not 51"),
        ("a\0", "must not contain the NUL character"),
        ("\x1b[31mred", "must not contain the control character U+001B"),
        ("\udc80", "must not contain half of a surrogate pair"),
        (3, "must be text, not int"),
    ],
)
def test_text_that_cannot_be_stored_or_shown_is_refused(text: object, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_text("description", text, 50)

    assert (caught.value.field, caught.value.why) == ("description", why)


@given(st.text(st.characters(), max_size=60) | st.just("a\0b\ud800c"), st.integers(1, 50))
def test_any_text_can_be_made_storable(text: str, length: int) -> None:
    clean = clean_text(text, length)

    assert len(clean) <= length
    assert "\0" not in clean
    assert clean.encode().decode() == clean
    assert clean_text(clean, length) == clean


def test_storable_text_is_left_alone_and_the_rest_is_marked() -> None:
    assert clean_text("fine\x1b", 5) == "fine\x1b"
    assert clean_text("a\0b\ud800c", 9) == "a\ufffdb\ufffdc"
    assert clean_text("abcdef", 5) == "abcd…"


# Labels


def test_labels_come_back_as_json_text() -> None:
    labels = {"team": "pay", "note": "any line, really", "empty": ""}

    assert msgspec.json.decode(check_labels("labels", labels)) == labels
    assert check_labels("labels", {}) == "{}"


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ({f"l{n}": "" for n in range(33)}, "must be at most 32, not 33"),
        ({"a b": "x"}, "the name 'a b' must consist of"),
        ({"": "x"}, "the name '' must not be empty"),
        ({1: "x"}, "the name 1 must be text, not int"),
        ({"a": 1}, "the value of a must be text, not int"),
        ({"a": None}, "the value of a must be text, not nothing"),
        ({"a": "x" * 201}, "the value of a must have at most 200 characters"),
        ({"a": "x\0"}, "the value of a must not contain the NUL character"),
        ({"a": "\ud800"}, "the value of a must not contain half of a surrogate pair"),
        (["a"], "must be a mapping of names to text, not list"),
    ],
)
def test_bad_labels_are_refused_with_the_label_that_is_at_fault(labels: object, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_labels("labels", labels)

    assert caught.value.field == "labels"
    assert caught.value.why.startswith(why)


def test_thirty_two_labels_are_not_too_many() -> None:
    check_labels("labels", {f"l{n}": "x" * 200 for n in range(32)})


# Instants and windows


class Nowhere(tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, _: datetime | None) -> None:
        return None

    dst = tzname = utcoffset


def test_an_instant_comes_back_in_utc() -> None:
    instant = check_instant("run_at", datetime(2030, 1, 1, 1, tzinfo=timezone(2 * HOUR)))

    assert instant == datetime(2029, 12, 31, 23, tzinfo=UTC)
    assert instant.tzinfo is UTC


@pytest.mark.parametrize("year", [2000, 2199])
def test_two_centuries_are_open_to_instants(year: int) -> None:
    check_instant("run_at", datetime(year, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (datetime(2030, 1, 1), "must have a time zone"),  # noqa: DTZ001
        (datetime(2030, 1, 1, tzinfo=Nowhere()), "must have a time zone"),
        (datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC), "must lie between the years 2000 and 2200, not in 1999"),
        (datetime(2200, 1, 1, tzinfo=UTC), "must lie between the years 2000 and 2200, not in 2200"),
        (datetime.max.replace(tzinfo=timezone(-HOUR)), "must lie between the years 2000 and 2200, not in 9999"),
        (datetime.min.replace(tzinfo=timezone(HOUR)), "must lie between the years 2000 and 2200, not in 1"),
        ("2030-01-01T00:00:00Z", "must be a date and time, not str"),
        (NOON.date(), "must be a date and time, not date"),
        (None, "must be a date and time, not nothing"),
    ],
)
def test_a_bad_instant_is_refused_with_its_reason(value: object, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_instant("run_at", value)

    assert (caught.value.field, caught.value.why) == ("run_at", why)


def test_a_window_may_be_open_at_either_end() -> None:
    assert check_window(None, None) == (None, None)
    assert check_window(NOON, None) == (NOON, None)
    assert check_window(None, NOON) == (None, NOON)
    assert check_window(NOON, NOON + HOUR) == (NOON, NOON + HOUR)


@pytest.mark.parametrize("end", [NOON, NOON - HOUR, NOON.astimezone(timezone(5 * HOUR))])
def test_a_window_without_time_in_it_is_refused(end: datetime) -> None:
    with pytest.raises(Invalid, match=r"^until: must be later than since"):
        check_window(NOON, end, ("since", "until"))


def test_each_end_of_a_window_must_be_an_instant() -> None:
    with pytest.raises(Invalid, match=r"^start: must have a time zone"):
        check_window(NOON.replace(tzinfo=None), None)
    with pytest.raises(Invalid, match=r"^end: must have a time zone"):
        check_window(None, NOON.replace(tzinfo=None))


# Durations


def test_the_ends_of_a_range_of_durations_belong_to_it() -> None:
    assert check_duration("ttl", HOUR, HOUR, HOUR) == HOUR


@pytest.mark.parametrize("value", [HOUR - timedelta.resolution, 2 * HOUR + timedelta.resolution])
def test_a_duration_outside_of_its_range_is_refused(value: timedelta) -> None:
    with pytest.raises(Invalid, match=r"^ttl: must be between 1h and 2h, not "):
        check_duration("ttl", value, HOUR, 2 * HOUR)


def test_a_number_is_no_duration_for_it_has_no_unit() -> None:
    with pytest.raises(Invalid, match=r"^ttl: must be a duration, not int"):
        check_duration("ttl", 5, HOUR, HOUR)


def test_a_delay_reaches_from_now_to_ten_years_ahead() -> None:
    assert check_delay("delay", timedelta(0)) == timedelta(0)
    assert check_delay("delay", MAX_DELAY) == MAX_DELAY
    with pytest.raises(Invalid, match=r"^delay: must be between 0s and 3650d, not -1s$"):
        check_delay("delay", timedelta(seconds=-1))
    with pytest.raises(Invalid, match=r"^delay: "):
        check_delay("delay", timedelta.max)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("250us", timedelta(microseconds=250)),
        ("500ms", timedelta(milliseconds=500)),
        ("5s", timedelta(seconds=5)),
        ("5m", timedelta(minutes=5)),
        ("5m5ms", timedelta(minutes=5, milliseconds=5)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("90m", timedelta(hours=1, minutes=30)),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(days=7)),
        ("1w2d3h4m5s6ms7us", timedelta(9, 3 * 3600 + 245, 6007)),
        ("0s", timedelta(0)),
        (HOUR, HOUR),
    ],
)
def test_a_duration_is_read_from_text(text: object, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "5",
        "m",
        "5 m",
        " 5m",
        "5m\n",
        "-5m",
        "1.5h",
        "5M",
        "30m1h",
        "1h1h",
        "5min",
        "\u0665m",
        "1e3s",
        5,
        5.0,
        None,
    ],
)
def test_what_is_no_duration_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(Invalid, match=r"^every: must be a duration such as 500ms, 5s, 1h30m, 2d or 1w, not "):
        parse_duration(text, "every")


@pytest.mark.parametrize("text", ["999999999999999w", "999999999d24h", "9" * 16 + "s", "9" * 100_000 + "s"])
def test_a_duration_beyond_all_bounds_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^duration: "):
        parse_duration(text)


@given(st.timedeltas(timedelta(0), timedelta.max))
def test_the_text_of_a_duration_reads_back_the_same(duration: timedelta) -> None:
    assert parse_duration(duration_text(duration)) == duration


@pytest.mark.parametrize(
    ("duration", "text"),
    [(timedelta(0), "0s"), (1.5 * HOUR, "1h30m"), (-HOUR, "-1h"), (timedelta(10), "10d"), (timedelta(14), "2w")],
)
def test_the_text_of_a_duration_is_short(duration: timedelta, text: str) -> None:
    assert duration_text(duration) == text

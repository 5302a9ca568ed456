"""Numbers over time, over the API, on both stores."""

from typing import Any

import pytest

from tests.api.conftest import Api, problem
from tidewheel.model import statistics as model
from tidewheel.model.states import Cause


async def statistics(api: Api, **query: Any) -> dict[str, Any]:
    answer = await api.client.get("/v1/stats", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_what_ended_is_added_up_with_delays_and_run_times(api: Api) -> None:
    for cause in (Cause.RETURNED, Cause.RETURNED, Cause.GAVE_UP):
        await api.submit(kind="mail")
        await api.run(cause)
    found = await statistics(api, kind="mail", step=86_400)
    assert sorted((point["outcome"], point["jobs"]) for point in found["points"]) == [("dead", 1), ("succeeded", 2)]
    for point in found["points"]:
        for times in (point["start_delay"], point["run_time"]):
            assert sum(bucket["count"] for bucket in times["buckets"]) == point["jobs"]
            assert 0 < times["p50"] <= times["p99"]
    assert (await statistics(api, kind="other"))["points"] == []
    assert found["step"] == 86_400


async def test_thirty_days_are_shown_by_the_hour(api: Api) -> None:
    found = await statistics(api, **{"from": "2026-01-01T00:00:00Z", "to": "2026-01-31T00:00:00Z"})
    assert (found["step"], found["points"]) == (3600, [])


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"from": "2026-01-01T00:00:00Z", "to": "2025-01-01T00:00:00Z"}, "to"),
        ({"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z", "step": "60"}, "step"),
        ({"step": "61"}, "step"),
        ({"to": "0001-01-01T00:00:00Z"}, "to"),
        ({"to": "9999-12-31T23:59:59Z"}, "to"),
        ({"to": "2000-01-01T00:00:00Z"}, "from"),
        ({"from": "0001-01-01T00:00:00Z"}, "from"),
        ({"from": "yesterday"}, "from"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_makes_no_sense_is_refused(api: Api, query: dict[str, str], parameter: str) -> None:
    found = problem(await api.client.get("/v1/stats", params=query), 400, "bad-parameter")
    assert found["errors"][0]["parameter"] == parameter


async def test_both_ends_are_those_of_whole_minutes_or_hours(api: Api) -> None:
    ends = {"from": "2026-01-01T10:10:30Z", "to": "2026-01-01T12:20:30Z"}
    found = await statistics(api, **ends)
    assert (found["from"], found["to"]) == ("2026-01-01T10:10:00Z", "2026-01-01T12:21:00Z")
    found = await statistics(api, **ends, step=3600)
    assert (found["from"], found["to"]) == ("2026-01-01T10:00:00Z", "2026-01-01T13:00:00Z")


async def test_more_numbers_than_an_answer_may_have_are_refused_before_all_are_added_up(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "MOST_ROWS", 3)
    for kind in ("a", "b", "c", "d"):
        await api.submit(kind=kind)
        await api.run(Cause.RETURNED)
    found = problem(await api.client.get("/v1/stats"), 400, "bad-parameter")
    assert found["errors"][0]["parameter"] == "from"
    assert "kind" in found["errors"][0]["detail"]
    assert [point["kind"] for point in (await statistics(api, kind="a"))["points"]] == ["a"]

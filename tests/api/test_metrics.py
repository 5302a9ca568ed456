"""Numbers for Prometheus: open to all, few labels, and there also when the store is not."""

import re

import pytest

from tests.api.conftest import Api, problem
from tidewheel.observe import Counter, Described, Histogram, Numbers, Registry, merged
from tidewheel.observe import page as page_of
from tidewheel.observe.catalogue import GROUPS, REQUESTS
from tidewheel.observe.metrics import MOST_SERIES
from tidewheel.server.metrics import MOST_QUEUES, OTHERS
from tidewheel.server.table import ENDPOINTS

LINE = re.compile(r'(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z]+="[^"\n]*",?)+\})? (-?[0-9.e+-]+|\+Inf|NaN))')


async def page(api: Api) -> dict[str, float]:
    """Return the numbers by their names with labels."""
    answer = await api.client.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    lines = answer.text.splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert len(lines) == len(set(lines))
    values = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in values}


async def test_jobs_and_workers_are_counted_by_queue_and_state(api: Api) -> None:
    for _ in range(3):
        await api.submit(queue="slow")
    await api.submit()
    await api.run()  # registers a worker
    await api.store.take_census()

    found = await page(api)
    assert found['tide_queue_depth{queue="slow",state="queued"}'] == 3
    assert found['tide_jobs_kept{queue="default",state="succeeded"}'] == 1
    assert found["tide_workers_alive"] == 1
    assert found['tide_jobs_submitted_total{queue="slow"}'] >= 3
    assert found["tide_store_up"] == 1
    assert found['tide_queue_oldest_seconds{queue="slow"}'] >= 0
    assert found['tide_alerts_firing{rule="queue.age"}'] == 0
    assert any(name.startswith("tide_build_info{version=") for name in found)


async def test_lines_that_wait_for_the_index_are_shown_with_how_long_they_wait(lone_api: Api) -> None:
    await lone_api.submit()
    await lone_api.run(lines=("one", "two", "three"))

    found = await page(lone_api)
    assert found["tide_log_unindexed_lines"] == 3
    assert 0 < found["tide_log_unindexed_seconds"] < 60


async def test_what_ended_what_runs_and_what_limits_hold_is_shown(lone_api: Api) -> None:
    for tenant, value in (("default", 1), ("secret", 2)):
        await lone_api.store.set_limit(f"customer={value}", 4, tenant=tenant)
    await lone_api.submit()
    await lone_api.run()
    await lone_api.store.take_census()

    found = await page(lone_api)
    assert found['tide_jobs_finished_total{queue="default",outcome="succeeded"}'] == 1
    assert found['tide_limit{limit="customer"}'] == 8
    assert found['tide_limit_in_use{limit="customer"}'] == 0
    assert not any("secret" in name for name in found)
    assert found["tide_schedule_lag_seconds"] == 0
    assert (await page(lone_api))["tide_store_latency_seconds_count"] == 1


async def test_requests_are_counted_by_endpoint_and_status_and_never_by_path(lone_api: Api) -> None:
    job_id = await lone_api.submit()
    for path in (f"/v1/jobs/{job_id}", "/v1/jobs/nothing", "/etc/passwd", "/v1/jobs?limit=0"):
        await lone_api.client.get(path)

    found = await page(lone_api)
    assert found['tide_http_requests_total{endpoint="submit_job",status="202"}'] == 1
    assert found['tide_http_requests_total{endpoint="get_job",status="200"}'] == 1
    assert found['tide_http_requests_total{endpoint="get_job",status="404"}'] == 1
    assert found['tide_http_requests_total{endpoint="list_jobs",status="400"}'] == 1
    assert found['tide_http_requests_total{endpoint="none",status="404"}'] == 1
    assert found['tide_http_request_seconds_bucket{endpoint="get_job",le="+Inf"}'] == 2
    assert found['tide_http_request_seconds_count{endpoint="get_job"}'] == 2
    assert found["tide_http_requests_under_way"] == 1
    names = {match for name in found for match in re.findall(r'endpoint="(\w+)"', name)}
    assert names <= {endpoint.name for endpoint in ENDPOINTS} | {"none"}


async def test_every_number_of_a_server_is_on_its_page(lone_api: Api) -> None:
    await lone_api.submit()
    answer = await lone_api.client.get("/metrics")
    named = set(re.findall(r"^# TYPE (\w+)", answer.text, re.MULTILINE))
    assert named >= {metric.name for metric in dict(GROUPS)["Servers"]}


async def test_without_a_store_the_server_still_shows_its_own_numbers(lone_api: Api) -> None:
    await lone_api.store.close()

    found = await page(lone_api)
    assert found["tide_store_up"] == 0
    assert "tide_workers_alive" not in found


async def test_while_other_processes_are_silent_their_last_numbers_are_shown_and_never_fewer(lone_api: Api) -> None:
    silent, others = [True], Registry()
    others.counter(REQUESTS).add("live", "200", value=7)
    own = Registry()

    async def ask(_within: float) -> list[Numbers]:
        if silent[0]:
            raise TimeoutError
        return merged([own.numbers(), others.numbers()])

    lone_api.service.metrics.join(own, ask)
    await lone_api.client.get("/livez")
    problem(await lone_api.client.get("/metrics"), 503, "unavailable")
    silent[0] = False
    assert (await page(lone_api))['tide_http_requests_total{endpoint="live",status="200"}'] == 8
    silent[0] = True
    assert (await page(lone_api))['tide_http_requests_total{endpoint="live",status="200"}'] == 8


async def test_the_store_is_asked_once_for_many_who_look(lone_api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = [0], lone_api.store.counts

    async def counts() -> object:
        asked[0] += 1
        return await real()

    monkeypatch.setattr(lone_api.store, "counts", counts)
    for _ in range(5):
        await page(lone_api)
    assert asked == [1]


async def test_a_thousand_queues_do_not_make_a_thousand_lines(lone_api: Api) -> None:
    jobs = [{"kind": "mail", "queue": f"q{number}"} for number in range(MOST_QUEUES + 20)]
    assert (await lone_api.client.post("/v1/jobs/batch", json=jobs)).status_code == 202
    await lone_api.store.take_census()

    found = await page(lone_api)
    depths = {name: value for name, value in found.items() if name.startswith("tide_queue_depth")}
    assert (len(depths), sum(depths.values())) == (MOST_QUEUES + 1, MOST_QUEUES + 20)
    assert depths[f'tide_queue_depth{{queue="{OTHERS}",state="queued"}}'] == 20


def test_labels_are_escaped_and_buckets_add_up() -> None:
    registry = Registry()
    registry.counter(Described("a_total", "counter", "Told\nin lines.", ("name",))).add('x"\\\n')
    times = registry.histogram(Described("b_seconds", "histogram", "Times."))
    for value in (0.001, 0.3, 99.0):
        times.observe(value)
    registry.gauge(Described("c", "gauge", "Now."), lambda: {(): 1.5})
    lines = page_of(registry.numbers()).decode().splitlines()

    assert 'a_total{name="x\\"\\\\\\n"} 1' in lines
    assert "# HELP a_total Told\\nin lines." in lines
    assert 'b_seconds_bucket{le="0.001"} 1' in lines
    assert 'b_seconds_bucket{le="0.5"} 2' in lines
    assert 'b_seconds_bucket{le="+Inf"} 3' in lines
    assert "b_seconds_count 3" in lines
    assert lines[-1] == "c 1.5"


def test_what_several_processes_counted_is_added_up() -> None:
    metric, times = Described("a_total", "counter", "A.", ("name",)), Described("b_seconds", "histogram", "B.")
    groups = []
    for name in ("x", "y", "x"):
        registry = Registry()
        registry.counter(metric).add(name)
        registry.histogram(times).observe(0.3)
        groups.append(registry.numbers())
    lines = page_of(merged(groups)).decode().splitlines()

    assert {'a_total{name="x"} 2', 'a_total{name="y"} 1', "b_seconds_count 3", 'b_seconds_bucket{le="0.5"} 3'} <= {
        *lines
    }
    assert [line for line in lines if line.startswith("# TYPE a_total")] == ["# TYPE a_total counter"]
    assert page_of(groups[0]).decode().count('a_total{name="x"} 1') == 1, "adding up changes nothing of what was added"


def test_whoever_makes_labels_up_does_not_fill_the_memory() -> None:
    counter = Counter(Described("a_total", "counter", "A.", ("name",)))
    times = Histogram(Described("b_seconds", "histogram", "B.", ("name",)))
    for number in range(MOST_SERIES + 10):
        counter.add(str(number))
        times.observe(1.0, str(number))
    counter.add("0")

    rows = dict(counter.numbers().rows)
    assert (len(rows), rows["0",]) == (MOST_SERIES, [2])
    assert len(times.numbers().rows) == MOST_SERIES
    [many] = merged([[counter.numbers()], [Counter(Described("a_total", "counter", "A.", ("name",))).numbers()]])
    assert len(many.rows) == MOST_SERIES

"""The dashboard and the alert rules speak of metrics that there are."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tidewheel.observe.catalogue import CATALOGUE

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus/tidewheel.rules.yml"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/tidewheel.json").read_text())
SERIES = {
    name
    for metric in CATALOGUE.values()
    for name in (
        [f"{metric.name}_{part}" for part in ("bucket", "sum", "count")]
        if metric.kind == "histogram"
        else [metric.name]
    )
}


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


def expressions() -> list[str]:
    targets = [target for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
    return [*(target["expr"] for target in targets), *(rule["expr"] for rule in rules())]


def test_every_expression_names_series_and_labels_that_there_are() -> None:
    assert len(expressions()) > 30
    for expression in expressions():
        names = re.findall(r"\btide_\w+", expression)
        assert names, expression
        assert set(names) <= SERIES, expression
        for name, selected in re.findall(r"(tide_\w+)\{([^}]*)\}", expression):
            metric = CATALOGUE.get(name) or CATALOGUE[re.sub(r"_(bucket|sum|count)$", "", name)]
            assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selected)) <= {*metric.labels, "le"}, expression


def test_counters_are_looked_at_by_their_rate_and_gauges_as_they_are() -> None:
    for expression in expressions():
        for name, metric in CATALOGUE.items():
            for before in re.findall(rf"(\w+\()?{name}(?:_bucket)?(?:\{{[^}}]*\}})?(?=[\[)\s]|$)", expression):
                moving = before in ("rate(", "increase(")
                assert moving == (metric.kind != "gauge"), f"{name} in {expression}"


def test_every_alert_says_what_is_wrong_and_how_bad_that_is() -> None:
    found = list(rules())
    assert len({rule["alert"] for rule in found}) == len(found) > 8
    for rule in found:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]


def test_an_alert_fires_if_a_server_or_all_of_them_are_gone() -> None:
    (rule,) = [rule for rule in rules() if rule["alert"] == "TidewheelServerDown"]
    jobs = [
        job["job_name"] for job in yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    ]
    (job,) = re.findall(r'up\{job="([^"]+)"\} == 0', rule["expr"])
    assert job in jobs
    assert "absent(tide_store_up)" in rule["expr"]
    assert rule["labels"]["severity"] == "critical"


def test_the_panels_of_the_dashboard_do_not_lie_upon_one_another() -> None:
    places: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not places & own, panel["title"]
        places |= own
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_prometheus_takes_the_rules_and_its_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool on this machine")
    for words in (["rules", str(RULES)], ["config", str(DEPLOY / "prometheus/prometheus.yml")]):
        done = subprocess.run([promtool, "check", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

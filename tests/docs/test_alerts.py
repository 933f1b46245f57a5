"""The alerts that are shipped: Prometheus takes them, each fires when it should, and what they name is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from phylactery_gateway.rpc.services import known_services

from tests.support.servers.prometheus import MISSING, PROMTOOL, promtool

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"
PAGE = (FOLDER.parents[1] / "docs" / "observability.md").read_text(encoding="utf-8")
ALERTS = [rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
TESTS = (FOLDER / "alerts.test.yml").read_text()
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason=MISSING)


def documented() -> dict[str, str]:
    """The kinds of all metrics of the page by the names that Prometheus has for them, suffixes of series included."""
    section = PAGE.split("## Metrics\n")[1]
    found = {}
    for name, kind, unit in re.findall(r"^\| `([^`]+)` \| (\w+) \| (?:`([^`]*)`)? ?\|", section, re.MULTILINE):
        suffix = {"s": "_seconds", "ms": "_milliseconds"}.get(unit, "")
        base = name.replace(".", "_") + ("" if name.endswith(suffix) and suffix else suffix)
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(kind, [""])
        found |= {base + end: kind for end in ends}
    return found


@needs_promtool
def test_prometheus_takes_the_rules_and_the_sample():
    for kind, name in (("rules", "alerts.yml"), ("config", "prometheus.yml")):
        done = promtool("check", kind, FOLDER / name)
        assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_each_alert_fires_when_it_should_and_not_otherwise():
    done = promtool("test", "rules", FOLDER / "alerts.test.yml")
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize(
    ("was", "is_"),
    [
        ("[5m]\n          ))) > 1\n", "[5m]\n          ))) > 9\n"),
        ("> 2.5", "> 2.5e3"),
        ('phylactery_rpc_outcome="failed"', 'phylactery_rpc_outcome!="ok"'),
        ("agent[.]v1[.]ChatService/.*|", ""),
        ("Watch|", ""),
        ('status=~"failed|dead"', 'status=~"failed"'),
        ("[15m])) > 2", "[15m])) > 0"),
        ("max(agent_effects_in_doubt)", "sum(agent_effects_in_doubt)"),
        ("max(riskgate_approvals_waiting)", "sum(riskgate_approvals_waiting)"),
        ("oldest_age_seconds) > 300", "oldest_age_seconds) > 900"),
        ('up{job="phylactery"}', "up"),
    ],
)
def test_the_tests_of_the_alerts_see_a_rule_that_is_wrong(tmp_path: Path, was: str, is_: str):
    rules = (FOLDER / "alerts.yml").read_text()
    assert was in rules
    (tmp_path / "alerts.yml").write_text(rules.replace(was, is_))
    (tmp_path / "alerts.test.yml").write_text(TESTS)
    assert promtool("test", "rules", tmp_path / "alerts.test.yml").returncode != 0


def test_every_metric_of_a_rule_is_on_the_page_and_every_alert_has_a_test_and_a_row():
    known = documented().keys() | {"up"}
    for rule in ALERTS:
        bare = re.sub(r"by \([^)]*\)", "", rule["expr"])
        used = set(re.findall(r"\b(?:rpc|agent|sla|riskgate|memory|gateway)_[a-z0-9_]+(?=[{\[)])", bare))
        assert used or "up{" in rule["expr"], rule["alert"]
        assert used <= known, rule["alert"]
        assert f"alertname: {rule['alert']}\n" in TESTS
        assert f"`{rule['alert']}`" in PAGE
        assert rule["annotations"].keys() == {"summary", "action"}


def test_the_rules_about_slow_calls_leave_out_every_stream_and_no_other_method_of_riskgate_and_memory():
    patterns = {found for rule in ALERTS for found in re.findall(r'rpc_method!~"([^"]+)"', rule["expr"])}
    [left_out] = patterns
    methods = {
        f"{service.full_name}/{method.name}": method.server_streaming or method.client_streaming
        for service in known_services().values()
        for method in service.methods
    }
    assert sum(methods.values()) > 8
    for name, streams in methods.items():
        matched = re.fullmatch(left_out, name) is not None  # as Prometheus does, from end to end
        assert matched or not streams, name
        waits = name.startswith("phylactery.agent.v1.ChatService/") or "/Erase" in name
        assert matched == (streams or waits) or "/Fetch" in name or "/Export" in name, name

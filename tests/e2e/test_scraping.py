"""What the four services export to Prometheus: what the page says, no more, nothing secret, and alerts that fire."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_cli.supervisor import Stack
from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes.stack import FREE_PORTS, Person
from tests.support.riskgate.asking_bundle import asks_first
from tests.support.servers.prometheus import MISSING, PROMETHEUS, promtool, running

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
SUBJECT, SECRET, THREAD, TENANT = "marifloria", "zarzuelesca", "hilo-de-marifloria", "tenant-cosmopolita"
UNITS = {"s": "_seconds", "ms": "_milliseconds"}


@dataclass
class Running:
    """The four services as processes, each an interpreter of its own that has imported only its own service."""

    stack: Stack
    gateway: subprocess.Popen[bytes]
    ports: dict[str, int]

    def page(self, service: str) -> str:
        return httpx.get(f"http://127.0.0.1:{self.ports[service]}/metrics", timeout=30).text


def until(true: Callable[[], Any], what: str) -> Any:
    limit = time.monotonic() + 90
    while not (found := true()):
        assert time.monotonic() < limit, f"{what} did not happen"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("scraped")
    extra = {name: {f"{name.upper()}_METRICS_PORT": "0"} for name in FREE_PORTS}
    extra["riskgate"]["RISKGATE_BUNDLE"] = str(asks_first(folder / "bundle"))
    # a model nobody answers for: what is measured of models is exported where one is configured
    extra["agent"] |= {"AGENT_MODEL": "tiny", "AGENT_MODEL_BASE_URL": "http://127.0.0.1:9/v1"}
    (folder / "forms").mkdir()
    shutil.copy(ROOT / "services/forms/phylactery_forms/samples/appointment.yaml", folder / "forms")
    extra["agent"]["AGENT_FORMS_DIR"] = str(folder / "forms")
    stack = Stack(folder, FREE_PORTS, extra)
    stack.start()
    for name in ("token", "secret"):
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(f"123456:{SECRET}")
    environment = {
        **os.environ,
        "GATEWAY_DATA_DIR": str(folder / "gateway"),
        "GATEWAY_READY_FILE": str(folder / "gateway" / "ready.json"),
        "GATEWAY_PORT": "0",
        "GATEWAY_METRICS_PORT": "0",
        "GATEWAY_AGENT_TARGET": stack.target("agent"),
        "GATEWAY_TELEGRAM_TOKEN_FILE": str(folder / "token"),
        "GATEWAY_TELEGRAM_SECRET_FILE": str(folder / "secret"),
        "GATEWAY_TELEGRAM_API_URL": "http://127.0.0.1:9",
    }
    gateway = subprocess.Popen([sys.executable, "-m", "phylactery_gateway"], env=environment)
    try:
        file = folder / "gateway" / "ready.json"
        until(lambda: file.exists() or gateway.poll() is not None, "a start of the gateway")
        told = {name: json.loads((folder / name / "ready.json").read_text()) for name in (*FREE_PORTS, "gateway")}
        yield Running(stack, gateway, {name: one["metrics_port"] for name, one in told.items()})
    finally:
        gateway.terminate()
        gateway.wait(60)
        stack.stop()


@pytest.fixture(scope="module")
def pages(services: Running) -> dict[str, str]:
    """The page of each service before it did anything."""
    return {name: services.page(name) for name in services.ports}


def rows() -> dict[str, tuple[str, str, set[str]]]:
    """Kind, unit and attributes of every metric of the page, by the name that Prometheus has for it."""
    section = PAGE.split("## Metrics\n")[1].split("\n## ")[0]
    found = {}
    for row in [line for line in section.splitlines() if line.startswith("| `")]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        unit = cells[2].strip("`")
        name = re.findall(r"`([^`]+)`", cells[0])[0].replace(".", "_") + UNITS.get(unit, "")
        found[name] = (cells[1], unit, {one.replace(".", "_") for one in re.findall(r"`([^`]+)`", cells[3])})
    return found


def test_the_services_export_exactly_the_metrics_of_the_page_from_the_start(pages: dict[str, str]) -> None:
    exported: dict[str, str] = {}
    for service, page in pages.items():
        for family in text_string_to_metric_families(page):
            assert family.documentation, f"{family.name} of {service} says nothing"
            exported[family.name] = family.type
    assert exported == {name: kind for name, (kind, _, _) in rows().items()}


def test_every_counter_is_zero_before_anything_happened_and_has_the_labels_of_the_page(pages: dict[str, str]) -> None:
    told = rows()
    for service, page in pages.items():
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                labels = dict(sample.labels)
                assert labels.pop("service_name") == f"phylactery-{service}"
                labels.pop("le", None)
                assert labels.keys() <= told[family.name][2], family.name
            if family.type == "counter":
                nothing_offered = (service, family.name) == ("gateway", "rpc_server_calls")
                assert family.samples or nothing_offered, f"{family.name} of {service} is not there from the start"
                counted = [one for one in family.samples if one.value]  # of calls, those of the services to each other
                assert counted == [] or family.name == "rpc_server_calls", counted
    late = 'sla_slo_violation_count_total{phylactery_pathway="text_fast_path",service_name="phylactery-agent"} 0.0'
    assert late in pages["agent"].splitlines()
    assert 'phylactery_channel="telegram"' in pages["gateway"]
    assert 'phylactery_form_id="appointment"' in pages["agent"]


@pytest.mark.skipif(PROMETHEUS is None, reason=MISSING)
def test_promtool_reads_each_page(pages: dict[str, str]) -> None:
    for page in pages.values():
        done = promtool("check", "metrics", given=page)
        assert done.returncode in {0, 3}, done.stderr  # 3: what it would have called otherwise


@pytest.mark.skipif(PROMETHEUS is None, reason=MISSING)
def test_prometheus_scrapes_all_four_and_alerts_fire_and_nothing_of_a_person_is_in_it(
    services: Running, pages: dict[str, str], tmp_path: Path
) -> None:
    assert pages
    sample = (ROOT / "deploy/prometheus/prometheus.yml").read_text()
    for service, port in (("agent", 9464), ("gateway", 9465), ("memory", 9466), ("riskgate", 9470)):
        assert f"127.0.0.1:{port}" in sample
        sample = sample.replace(f"127.0.0.1:{port}", f"127.0.0.1:{services.ports[service]}")
    config, rules = tmp_path / "prometheus.yml", tmp_path / "alerts.yml"
    config.write_text(sample.replace("15s", "1s"))
    alerts = (ROOT / "deploy/prometheus/alerts.yml").read_text()
    assert "oldest_age_seconds) > 300" in alerts
    rules.write_text(re.sub(r"for: \d+m", "for: 1s", alerts).replace("seconds) > 300", "seconds) > 2"))
    assert promtool("check", "config", config).returncode == 0
    marifloria = Person(services.stack, SUBJECT, thread=THREAD, tenant=TENANT)
    with running(config, tmp_path) as prometheus, marifloria as person:
        until(lambda: len(prometheus.value("up == 1")) == 4, "four targets that are up")
        assert prometheus.firing() == {}
        asked = person.say(f'append "{SECRET}" to {SECRET}.txt')
        assert asked.run.status == event_pb2.RUN_STATUS_SUSPENDED
        fired = until(lambda: prometheus.firing().get("PhylacteryApprovalWaitsLong"), "the alert of an approval")
        assert fired.startswith("an approval has waited for ")
        assert list(prometheus.value("max(riskgate_approvals_waiting)").values()) == [1]
        assert list(prometheus.value("max(agent_approvals_waiting)").values()) == [1]
        called = prometheus.value(
            'rpc_server_calls_total{rpc_method="phylactery.agent.v1.ChatService/SendMessage", '
            'phylactery_rpc_outcome="ok", service_name="phylactery-agent"}'
        )
        assert sum(called.values()) >= 1
        everything = "".join(services.page(name) for name in services.ports)
        for word in (SUBJECT, SECRET, THREAD, TENANT, asked.pending_approval.approval_id, asked.run.id):
            assert word not in everything, word
        services.gateway.terminate()
        services.gateway.wait(60)
        down = until(lambda: prometheus.firing().get("PhylacteryDown"), "the alert of a process that is gone")
        assert f":{services.ports['gateway']}" in down

"""Memory's metrics while the real agent uses it, read through the process's metric reader."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.processes import commands

TURNS = """
import asyncio, json, sys
from pathlib import Path
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.support.agent.system import open_system

reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))

async def main():
    async with open_system(Path(sys.argv[1])) as system:
        ana = system.person("ana")
        for text, thread in (
            ("hola", "t1"),
            ("Me llamo Ana.", "t1"),
            ("recuerda que mi perro come pienso", "t3"),  # t1 waits for an answer: what is read beside may count twice
            ("¿qué recuerdas sobre el pienso?", "t2"),
        ):
            await ana.say(text, thread)
            assert await system.agent.delivery.flush_all()
        found = {
            metric.name: [point_of(point) for point in metric.data.data_points]
            for resource in reader.get_metrics_data().resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
        Path(sys.argv[2]).write_text(json.dumps(found))

def point_of(point):
    value = getattr(point, "value", None)
    if value is None:
        value = [point.count, point.sum]
    return [dict(point.attributes), value]

asyncio.run(main())
"""


@pytest.mark.slow
def test_every_metric_of_memory_is_read_with_what_the_turns_did(tmp_path: Path) -> None:
    """A process of its own: a process has one meter provider, once."""
    out = tmp_path / "metrics.json"
    done = commands.run("-c", TURNS, str(tmp_path / "data"), str(out), environment=os.environ)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(out.read_text())
    assert {name for name in found if name.startswith("memory.")} == {
        "memory.read_ms",
        "memory.write_count",
        "memory.hit_ratio",
        "memory.profile_hit_ratio",
    }
    reads = {about["phylactery.pathway"]: told for about, told in found["memory.read_ms"]}
    assert {pathway: count for pathway, (count, _) in reads.items()} == {"text_fast_path": 1, "tool_intent": 3}
    assert all(milliseconds > 0 for _, milliseconds in reads.values())
    writes = {about["phylactery.memory.layer"]: count for about, count in found["memory.write_count"]}
    assert writes == {"none": 2, "profile": 1, "semantic": 1}
    assert found["memory.hit_ratio"] == [[{}, 1 / 3]]
    assert found["memory.profile_hit_ratio"] == [[{}, 2 / 4]]

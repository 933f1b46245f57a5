"""Spans and metrics reach a real OTLP collector, and spans always the file; neither contains sensitive values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc
from phylactery_chassis.telemetry import telemetry

from tests.support.servers.collector import Collector, collecting

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SECRET = "what-ana-said-in-private"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as opened:
        yield opened


@pytest.mark.slow
def test_a_call_is_told_to_the_collector_and_to_the_file_under_the_callers_trace(collector: Collector, tmp_path: Path):
    ready = tmp_path / "ready.json"
    env = {
        "MEMORY_DATA_DIR": str(tmp_path / "memory"),
        "MEMORY_PORT": "0",
        "MEMORY_READY_FILE": str(ready),
        "MEMORY_OTLP_ENDPOINT": collector.endpoint,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "phylactery_memory"], env={**os.environ, **env}, stderr=subprocess.PIPE, text=True
    )
    try:
        limit = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < limit:
            assert process.poll() is None
            time.sleep(0.02)
        with grpc.insecure_channel(f"127.0.0.1:{json.loads(ready.read_text())['port']}") as channel:
            request = memory_pb2.AppendMessagesRequest(
                thread_id="t",
                messages=[memory_pb2.Message(message_id="m", role=memory_pb2.ROLE_USER, content=SECRET)],
            )
            memory_pb2_grpc.MemoryServiceStub(channel).AppendMessages(
                request, metadata=(("traceparent", f"00-{TRACE}-{PARENT}-01"),), timeout=60
            )
    finally:
        process.terminate()
        _, log = process.communicate(timeout=60)
    name = "phylactery.memory.v1.MemoryService/AppendMessages"
    [told] = [span for span in collector.spans if span.name == name]
    assert (told.trace_id.hex(), told.parent_span_id.hex()) == (TRACE, PARENT)
    attributes = {attribute.key: attribute.value.string_value for attribute in told.attributes}
    assert attributes["rpc.system.name"] == "grpc"
    assert attributes["rpc.response.status_code"] == "OK"
    assert "rpc.server.call.duration" in collector.metrics
    content = (tmp_path / "memory/spans/memory.jsonl").read_text()
    [written] = [row for row in map(json.loads, content.splitlines()) if row["name"] == name]
    assert (written["trace_id"], written["parent_id"]) == (TRACE, PARENT)
    assert SECRET.encode() not in collector.raw
    assert SECRET not in content + log


def test_the_span_file_stays_open_and_is_begun_again_where_it_was_removed_set_aside_or_closed(
    tmp_path: Path, monkeypatch
):
    path = tmp_path / "spans" / "x.jsonl"
    exporter = telemetry.FileSpanExporter(path, "x")

    def export(name: str) -> list[str]:
        assert exporter.export([ReadableSpan(name)]).name == "SUCCESS"
        return [json.loads(line)["name"] for line in path.read_text().splitlines()]

    assert export("a") == ["a"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", lambda *_args: pytest.fail("opened once more"))
        assert export("b") == ["a", "b"]
    path.unlink()
    assert export("c") == ["c"]
    monkeypatch.setattr(telemetry, "_MAX_FILE_BYTES", 1)
    assert export("d") == ["d"]
    assert json.loads((tmp_path / "spans" / "x.jsonl.1").read_text())["name"] == "c"
    path.unlink()
    assert export("e") == ["e"]
    exporter.shutdown()
    monkeypatch.setattr(telemetry, "_MAX_FILE_BYTES", 1_000_000)
    assert export("f") == ["e", "f"]


@pytest.mark.parametrize("state", [f"not a pair, {SECRET}", f"a={SECRET};{SECRET}\u00e9", f"{SECRET}=1,{SECRET}=2"])
def test_what_a_caller_says_of_a_trace_beside_its_ids_reaches_no_log(state: str, caplog: pytest.LogCaptureFixture):
    context = telemetry.extract({"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": state})
    own = trace.get_current_span(context).get_span_context()
    assert (format(own.trace_id, "032x"), format(own.span_id, "016x"), len(own.trace_state)) == (TRACE, PARENT, 0)
    telemetry.extract({"traceparent": SECRET, "tracestate": state})
    assert not caplog.records

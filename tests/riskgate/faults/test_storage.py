"""The store fails, the process dies, secrets could leak: nothing is decided, nothing is lost, nothing leaks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import time
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from phylactery.riskgate.v1 import approval_pb2, approval_pb2_grpc, riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_chassis.telemetry.spans import LightProvider
from phylactery_riskgate.audit.export import export_log, verify_export
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from structlog.testing import capture_logs

from tests.support.processes.forks import Forked

READ = ("read_file", '{"path":"a.txt"}')


async def test_a_record_that_cannot_be_made_is_unavailable_and_nothing_was_decided(gate, ana, call, refused):
    gate.fail_writes()
    for asked in (call(*READ), call()):
        refusal = await refused(ana.evaluate(asked))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    assert gate.count("decisions") == gate.count("approvals") == gate.count("audit_entries") == 0
    gate.database.write_sync(lambda c: c.execute(sa.text("DROP TRIGGER no_rows")))
    assert (await ana.evaluate(call(*READ))).permit


async def test_a_database_that_cannot_grow_refuses_the_decision_and_goes_on(gate, ana, call, refused):
    gate.fill_disk()
    refusal = await refused(ana.evaluate(call("echo", '{"text":"' + "x" * 500_000 + '"}')))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")
    assert gate.count("decisions") == gate.count("audit_entries") == 0


async def test_a_store_that_fails_at_redeem_and_at_an_answer_leaves_both_as_they_were(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    gate.fail_writes()
    assert (await refused(ana.approve(approval))).code == grpc.StatusCode.UNAVAILABLE
    assert (await refused(ana.approve(approval, code="WRONG"))).code == grpc.StatusCode.UNAVAILABLE
    gate.database.write_sync(lambda c: c.execute(sa.text("DROP TRIGGER no_rows")))
    assert (await ana.get(approval.id)).attempts_left == 5
    await ana.approve(approval)
    answer = await ana.evaluate(approval=approval.id)
    gate.fail_writes()
    assert (await refused(ana.redeem(answer.permit))).code == grpc.StatusCode.UNAVAILABLE
    gate.database.write_sync(lambda c: c.execute(sa.text("DROP TRIGGER no_rows")))
    assert (await ana.get(approval.id)).state == types_pb2.APPROVAL_STATE_APPROVED
    assert (await ana.redeem(answer.permit)).receipt


async def test_a_database_that_is_gone_refuses_everything(gate, ana, call, refused):
    answer = await ana.evaluate(call(*READ))
    gate.database.close()
    for attempt in (ana.evaluate(call()), ana.redeem(answer.permit, call(*READ)), ana.list()):
        assert (await refused(attempt)).code == grpc.StatusCode.UNAVAILABLE


@pytest.fixture
def spans() -> InMemorySpanExporter:
    """Every span that ends from now on, whoever set the process's tracing up before."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, LightProvider):
        provider = LightProvider()
        trace.set_tracer_provider(provider)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


async def test_neither_log_nor_span_nor_database_ever_holds_a_code_or_an_argument(gate, ana, spans, refused):
    with capture_logs() as lines:
        approval = (await ana.evaluate(plan_step="write the word")).approval
        await refused(ana.approve(approval, code="WRONGCODE1"))
        await refused(ana.approve(approval, args_hash="sha256:" + "0" * 64))
        await ana.approve(approval)
        answer = await ana.evaluate(approval=approval.id)
        redeemed = await ana.redeem(answer.permit)
        await refused(ana.redeem(answer.permit, execution="execution-2"))
        await ana.report("SUCCEEDED")
        await ana.reject((await ana.evaluate(run="r2")).approval.id, reason="sesame-closed")
    secrets = [approval.code, "WRONGCODE1", "sesame", "notes.txt", "write the word", answer.permit, redeemed.receipt]
    ended = spans.get_finished_spans()
    assert {f"phylactery.riskgate.v1.RiskGateService/{name}" for name in ("Evaluate", "Redeem")} <= {
        span.name for span in ended
    }
    assert len(lines) >= 9
    written = json.dumps(lines) + "".join(span.to_json() for span in ended)
    stored = b"".join(path.read_bytes() for path in gate.folder.glob("riskgate.db*"))
    for secret in secrets:
        assert secret not in written, secret
        assert secret.encode() not in stored, secret


def start_child(folder: Path, point: str) -> tuple[Forked, int]:
    ready = folder / "ready.json"
    ready.unlink(missing_ok=True)
    environment = os.environ | {
        "RISKGATE_DATA_DIR": str(folder),
        "RISKGATE_PORT": "0",
        "RISKGATE_READY_FILE": str(ready),
        "CRASH_SERVICE": "riskgate",
        "CRASH_AT": point,
    }
    child = Forked("tests.support.processes.crashing", environment=environment)
    deadline = time.monotonic() + 60
    while not ready.exists():
        assert child.poll() is None, "the service ended before it served"
        assert time.monotonic() < deadline, "the service did not start"
        time.sleep(0.02)
    return child, json.loads(ready.read_text())["port"]


class Child:
    """A RiskGate in a process of its own, which dies at a crash point."""

    def __init__(self, folder: Path, point: str = "") -> None:
        self.process, port = start_child(folder, point)
        self.channel = aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)])
        self.decisions = riskgate_pb2_grpc.RiskGateServiceStub(self.channel)
        self.approvals = approval_pb2_grpc.ApprovalServiceStub(self.channel)

    async def approve(self, approval: types_pb2.Approval) -> types_pb2.Approval:
        request = approval_pb2.ApproveRequest(
            approval_id=approval.id, args_hash=approval.args_hash, code=approval.code, thread_id=approval.thread_id
        )
        return (await self.approvals.Approve(request, timeout=60)).approval

    async def evaluate(self, asked: types_pb2.ToolCall) -> riskgate_pb2.EvaluateResponse:
        request = riskgate_pb2.EvaluateRequest(call=asked, thread_id="t1", run_id="r1")
        return await self.decisions.Evaluate(request, timeout=60)

    async def redeem(self, permit: str, asked: types_pb2.ToolCall, execution: str) -> riskgate_pb2.RedeemResponse:
        request = riskgate_pb2.RedeemRequest(
            permit=permit, call=asked, execution_id=execution, thread_id="t1", run_id="r1"
        )
        return await self.decisions.Redeem(request, timeout=60)

    async def died(self) -> None:
        await self.channel.close()
        assert await asyncio.to_thread(self.process.wait, 60) == -signal.SIGKILL

    async def stop(self) -> None:
        await self.channel.close()
        self.process.terminate()
        assert await asyncio.to_thread(self.process.wait, 60) == 0


@pytest.mark.slow
async def test_killed_after_the_commit_of_evaluate_it_answers_the_same_once_started_again(tmp_path, call):
    child = Child(tmp_path, "riskgate.2")
    with pytest.raises(aio.AioRpcError):
        await child.evaluate(call(*READ))
    await child.died()
    again = Child(tmp_path)
    answer = await again.evaluate(call(*READ))
    assert answer.replayed
    assert answer.permit
    await again.stop()
    with sqlite3.connect(tmp_path / "riskgate.db") as database:
        assert database.execute("SELECT count(*) FROM decisions").fetchone() == (1,)


@pytest.mark.slow
async def test_killed_after_the_commit_of_an_answer_it_gives_the_same_answer_the_same_state(tmp_path, call):
    child = Child(tmp_path, "riskgate.4")
    approval = (await child.evaluate(call())).approval
    with pytest.raises(aio.AioRpcError):
        await child.approve(approval)
    await child.died()
    again = Child(tmp_path)
    assert (await again.approve(approval)).state == types_pb2.APPROVAL_STATE_APPROVED
    await again.stop()
    with sqlite3.connect(tmp_path / "riskgate.db") as database:
        assert database.execute("SELECT count(*) FROM approval_votes").fetchone() == (1,)


@pytest.mark.slow
async def test_killed_after_the_commit_of_redeem_it_gives_the_same_execution_its_receipt(tmp_path, call):
    child = Child(tmp_path, "riskgate.8")
    permit = (await child.evaluate(call(*READ))).permit
    with pytest.raises(aio.AioRpcError):
        await child.redeem(permit, call(*READ), "execution-1")
    await child.died()
    again = Child(tmp_path)
    redeemed = await again.redeem(permit, call(*READ), "execution-1")
    assert redeemed.repeated_redeem
    with pytest.raises(aio.AioRpcError) as caught:
        await again.redeem(permit, call(*READ), "execution-2")
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    await again.stop()


@pytest.mark.slow
async def test_killed_in_the_middle_of_a_storm_it_keeps_every_answered_decision_and_the_log_verifies(
    tmp_path, make_gate, call
):
    child = Child(tmp_path / "storm")
    answered: set[str] = set()
    enough = asyncio.Event()

    async def ask(number: int) -> None:
        answered.add((await child.evaluate(call(*READ, f"c{number}"))).decision_id)
        if len(answered) == 20:
            enough.set()

    tasks = [asyncio.create_task(ask(number)) for number in range(200)]
    await enough.wait()
    child.process.kill()
    await asyncio.gather(*tasks, return_exceptions=True)
    await child.died()
    gate = await make_gate("storm", bundle=default_bundle_folder())
    kept = {record["decision_id"] for record in gate.records("decision")}
    assert answered <= kept
    assert len(kept) == gate.count("decisions")
    out = tmp_path / "export.jsonl"
    gate.database.read_sync(
        lambda c: export_log(c, "riskgate", out, keys=gate.keys.public, signer=gate.keys.signer, heads=gate.heads)
    )
    assert verify_export(out, list(gate.keys.public)).ok


async def test_health_follows_the_database(gate):
    stub = health_pb2_grpc.HealthStub(gate.channel)
    request = health_pb2.HealthCheckRequest(service="phylactery.riskgate.v1.RiskGateService")
    assert (await stub.Check(request)).status == health_pb2.HealthCheckResponse.SERVING

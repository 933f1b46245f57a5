"""RiskGate: the decision in process, and over the wire with durable audit beside an RPC that does nothing."""

from __future__ import annotations

import hashlib
import json
import time
from functools import partial

from grpc import aio
from phylactery.riskgate.v1 import key_pb2, key_pb2_grpc, riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_riskgate.domain.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.engine import DecisionEngine
from phylactery_riskgate.domain.model import Caller, CallSite, RawCall

from benchmarks.inspection import measure_inspection
from benchmarks.measure import emit, sample
from benchmarks.stack import services

_DECISIONS = 3_000
_CALLS = 1_500


def _decisions() -> None:
    engine = DecisionEngine(load_bundle(default_bundle_folder()))
    caller, site = Caller("ana", "acme"), CallSite("thread", "run")
    calls = {
        "decision_allow_us": RawCall("read_file", "c", json.dumps({"path": "a.txt"})),
        "decision_auth_required_us": RawCall("write_file", "c", json.dumps({"path": "a.txt", "content": "x"})),
        "decision_blocked_us": RawCall("write_file", "c", json.dumps({"path": ".ssh/id", "content": "x"})),
    }
    for name, call in calls.items():
        engine.decide(call, caller, site)
        began = time.perf_counter()
        for _ in range(_DECISIONS):
            verdict = engine.decide(call, caller, site)
        micros = (time.perf_counter() - began) / _DECISIONS * 1e6
        canonical = json.dumps({"path": "a.txt"}).encode()
        began = time.perf_counter()
        for _ in range(_DECISIONS):
            hashlib.sha256(canonical).hexdigest()
        floor = (time.perf_counter() - began) / _DECISIONS * 1e6
        emit(name, micros, "us", decision=str(verdict.decision), floor_sha256_us=floor)


def _request(run: str, number: int) -> riskgate_pb2.EvaluateRequest:
    return riskgate_pb2.EvaluateRequest(
        call=types_pb2.ToolCall(tool="read_file", tool_call_id=f"call-{number}", arguments_json='{"path":"a.txt"}'),
        thread_id="bench",
        run_id=run,
    )


async def _wire(target: str) -> None:
    async with aio.insecure_channel(target) as channel:
        gate = riskgate_pb2_grpc.RiskGateServiceStub(channel)
        keys = key_pb2_grpc.KeyServiceStub(channel)

        async def evaluate(run: str, number: int) -> object:
            return await gate.Evaluate(_request(run, number))

        for concurrency in (1, 16):
            run = f"run-{concurrency}"
            floor = await sample(
                lambda _: keys.ListKeys(key_pb2.ListKeysRequest()), calls=_CALLS, concurrency=concurrency
            )
            answered = await sample(partial(evaluate, run), calls=_CALLS, concurrency=concurrency)
            if concurrency == 1:
                emit("evaluate_c1_p50_ms", answered.percentile_ms(50), "ms", floor_rpc_ms=floor.percentile_ms(50))
            emit(f"evaluate_c{concurrency}_rps", answered.per_second, "calls/s", floor_rpc_rps=floor.per_second)
        permits = [(await gate.Evaluate(_request("run-redeem", i))).permit for i in range(_CALLS)]

        async def redeem(number: int) -> object:
            if number < 0:
                return await keys.ListKeys(key_pb2.ListKeysRequest())
            return await gate.Redeem(
                riskgate_pb2.RedeemRequest(
                    permit=permits[number],
                    call=_request("run-redeem", number).call,
                    execution_id=f"execution-{number}",
                    thread_id="bench",
                    run_id="run-redeem",
                )
            )

        redeemed = await sample(redeem, calls=_CALLS, concurrency=16)
        emit("redeem_c16_rps", redeemed.per_second, "calls/s", p50_ms=redeemed.percentile_ms(50))


async def run() -> None:
    """Prints the suite's lines."""
    _decisions()
    measure_inspection()
    with services() as stack:
        await _wire(stack.target("riskgate"))

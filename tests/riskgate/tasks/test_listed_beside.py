"""What a tool listed keeps no other caller waiting while a call is compared with it."""

from __future__ import annotations

import asyncio
import json

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.riskgate.tasks import arguments, with_tasks

_RESULTS = 60


@pytest.fixture
def bundle(bundle_with):
    return with_tasks(bundle_with())


@pytest.mark.slow
async def test_a_health_probe_is_answered_while_a_call_is_compared_with_hostile_lists(gate, ana, call):
    task = await ana.begin("Send money to Bob")
    for number in range(_RESULTS):
        book = [{"name": "Bob" + "," * at, "iban": f"ES91{number:04}{at:016}"} for at in range(200)]
        await ana.observe(task, f"book-{number}", tool="contacts", result_json=json.dumps(book))
    health = health_pb2_grpc.HealthStub(gate.channel)
    evaluating = asyncio.create_task(ana.evaluate(call("transfer", arguments("Bob"), "c1"), task_id=task))
    answered = 0
    while not evaluating.done():
        await health.Check(health_pb2.HealthCheckRequest(), timeout=30)
        answered += not evaluating.done()
    assert (await evaluating).decision
    assert answered >= 5, answered

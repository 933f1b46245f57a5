"""SIGKILL during a thread's deletion: a retry completes it, including memory and RiskGate."""

from __future__ import annotations

import time
from collections.abc import Callable

import grpc
import pytest
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc
from phylactery.riskgate.v1 import types_pb2

from tests.support.processes.shared import Tenant
from tests.support.processes.stack import Person, await_death, relaunch

pytestmark = pytest.mark.slow

ENDS_SECONDS = 60


def delete(person: Person) -> None:
    stub = chat_pb2_grpc.ChatServiceStub(person.channel("agent"))
    stub.DeleteThread(chat_pb2.DeleteThreadRequest(thread_id=person.thread), metadata=person.metadata, timeout=60)


def kept_by_memory(person: Person) -> list[str]:
    stub = memory_pb2_grpc.MemoryServiceStub(person.channel("memory"))
    request = memory_pb2.ListMessagesRequest(thread_id=person.thread)
    return [message.content for message in stub.ListMessages(request, metadata=person.metadata, timeout=60).messages]


@pytest.mark.parametrize("point", ["agent.delete.begun", "agent.delete.forgotten", "agent.delete.removed"])
def test_a_deletion_that_was_killed_is_done_when_it_is_asked_for_again(
    new_tenant: Callable[..., Tenant], point: str
) -> None:
    tenant = new_tenant()
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        ana.say("hola")
        asked = ana.say('append "one line" to log.txt')
        with pytest.raises(grpc.RpcError):
            delete(ana)
        await_death(stack, "agent")
        relaunch(stack, "agent")
        delete(ana)
        with pytest.raises(grpc.RpcError) as gone:
            ana.standing()
        assert gone.value.code() is grpc.StatusCode.NOT_FOUND
        wanted = types_pb2.APPROVAL_STATE_CANCELLED
        limit = time.monotonic() + ENDS_SECONDS
        while kept_by_memory(ana) or ana.approval(asked.pending_approval.approval_id).state != wanted:
            assert time.monotonic() < limit, "memory or RiskGate was not told"
            time.sleep(0.05)
        ana.say("gracias")
        assert ana.standing().first_sequence == 1

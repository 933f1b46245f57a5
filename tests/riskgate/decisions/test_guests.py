"""Who is a guest comes with the call, from whoever is authenticated, and is decided by and recorded."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from phylactery.riskgate.v1 import types_pb2

from tests.support.riskgate.people import Person, tool_call

READ = '{"path":"notes.txt"}'


def told(person: Person, level: str) -> Person:
    person.metadata = (*person.metadata, ("x-phylactery-level", level))
    return person


def read(call_id: str) -> types_pb2.ToolCall:
    return tool_call("read_file", READ, call_id)


async def decided(person: Person, call_id: str) -> tuple[str, list[str]]:
    answer = await person.evaluate(read(call_id))
    return types_pb2.Decision.Name(answer.decision), [one.code for one in answer.reasons]


NO, YES = ("DECISION_BLOCKED", ["NOT_FOR_GUESTS"]), "DECISION_ALLOW"


@pytest.mark.parametrize("subject", ["wa:usr_1", "tg:usr_2", "wa:ana"])
async def test_a_person_of_a_channel_is_a_guest_unless_the_delegate_tells_that_they_are_lifted(
    gate: Any, subject: str
) -> None:
    assert await decided(gate.through_agent(subject), "c1") == NO
    assert await decided(told(gate.through_agent(subject), "guest"), "c2") == NO
    assert (await decided(told(gate.through_agent(subject), "user"), "c3"))[0] == YES
    levels = [one["caller"]["level"] for one in gate.records("decision")]
    assert levels == ["guest", "guest", "user"]


async def test_anybody_else_is_a_guest_only_if_the_delegate_tells(gate: Any) -> None:
    assert (await decided(gate.through_agent("ana"), "c1"))[0] == YES
    assert await decided(told(gate.through_agent("ana"), "guest"), "c2") == NO
    assert (await decided(gate.person("ana"), "c3"))[0] == YES


@pytest.mark.parametrize("level", ["admin", "system", "GUEST", "user,guest", " "])
async def test_no_other_level_can_be_told(gate: Any, level: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await told(gate.through_agent("wa:usr_1"), level).evaluate(read("c1"))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_level_told_twice_is_refused(gate: Any) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await told(told(gate.through_agent("wa:usr_1"), "guest"), "user").evaluate(read("c1"))
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_permit_of_a_lifted_person_is_not_redeemed_once_they_are_a_guest(gate: Any) -> None:
    answer = await told(gate.through_agent("wa:usr_1"), "user").evaluate(read("c1"))
    with pytest.raises(grpc.aio.AioRpcError):
        await gate.through_agent("wa:usr_1").redeem(answer.permit, read("c1"))

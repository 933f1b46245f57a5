"""Questions through the client: only yes or no, only of class self, only where the operator says whose client it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from phylactery_mcp_proxy.guarding.calls import Asked, Caller, Proposal
from phylactery_mcp_proxy.running import assembled
from phylactery_mcp_proxy.settings import GateTarget

from tests.support.proxies import Place, texts

ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
YES = types.ElicitResult(action="accept", content={"allow": True})
NO = types.ElicitResult(action="accept", content={"allow": False})
DECLINE = types.ElicitResult(action="decline")
CLOSED = types.ElicitResult(action="cancel")
NOTE = ("mcp_test_note", {"text": "milk"})


class Person:
    """Who sits at the client, and answers each form with the same."""

    def __init__(self, answer: types.ElicitResult) -> None:
        self.answer = answer
        self.asked: list[types.ElicitRequestFormParams] = []

    async def __call__(self, _: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.asked.append(params)
        return self.answer


@ERAS
async def test_a_yes_in_a_form_approves_and_runs_the_call(make_place: Callable[..., Place], mode: str):
    place = await make_place().pin()
    ana = Person(YES)
    async with place.client(mode, answer=ana, subject="ana", forms=True) as client:
        result = await client.call_tool(*NOTE)
    assert texts(result).startswith("noted milk")
    assert place.effects == ["milk"]
    (form,) = ana.asked
    assert "mcp_test_note" in form.message
    assert 'text: "milk"' in form.message
    assert form.requested_schema["properties"].keys() == {"allow"}, "no code and no secret is ever asked for"
    async with place.riskgate("ana") as gate:
        (approval,) = (await gate.list_approvals(thread_id=place.thread)).approvals
    assert (approval.state, approval.decided_by, approval.requester) == ("REDEEMED", "ana", "ana")
    assert "APPROVE" not in form.message


@ERAS
@pytest.mark.parametrize("answer", [NO, DECLINE])
async def test_a_no_rejects_the_approval(make_place: Callable[..., Place], mode: str, answer: types.ElicitResult):
    place = await make_place().pin()
    async with place.client(mode, answer=Person(answer), subject="ana", forms=True) as client:
        result = await client.call_tool(*NOTE)
    assert result.is_error
    assert "said no" in texts(result)
    assert place.effects == []
    async with place.riskgate("ana") as gate:
        (approval,) = (await gate.list_approvals(thread_id=place.thread)).approvals
    assert approval.state == "REJECTED"


@ERAS
async def test_a_form_that_is_closed_answers_nothing_and_the_approval_waits_on(
    make_place: Callable[..., Place], mode: str
):
    place = await make_place().pin()
    async with place.client(mode, answer=Person(CLOSED), subject="ana", forms=True) as client:
        result = await client.call_tool(*NOTE)
        assert result.is_error
        assert await place.approve("ana") in texts(result)
        assert place.effects == []
        assert not (await client.call_tool(*NOTE)).is_error, "answered elsewhere, so no form is shown again"
    assert place.effects == ["milk"]


@ERAS
async def test_what_needs_another_person_is_never_asked_in_a_form(make_place: Callable[..., Place], mode: str):
    place = await make_place("rawgrave").pin()
    ana = Person(YES)
    async with place.client(mode, answer=ana, subject="ana", forms=True) as client:
        result = await client.call_tool("mcp_rawgrave_act", {"text": "x"})
    assert result.is_error
    assert "class peer" in texts(result)
    assert "riskgate approvals approve ap_" in texts(result)
    assert ana.asked == []
    assert place.effects == []


@pytest.mark.parametrize("given", [{"subject": "ana"}, {}])
async def test_without_forms_nobody_is_asked(make_place: Callable[..., Place], given: dict[str, str]):
    place = await make_place().pin()
    ana = Person(YES)
    async with place.client("legacy", answer=ana, **given) as client:
        assert (await client.call_tool(*NOTE)).is_error
    assert ana.asked == []
    assert place.effects == []


async def first_round(client: Client, arguments: dict[str, Any]) -> str:
    """Return the sealed state with which a call waits."""
    waits = await client.session.call_tool("mcp_test_note", arguments, allow_input_required=True)
    assert isinstance(waits, types.InputRequiredResult)
    assert waits.request_state is not None
    return waits.request_state


async def second_round(client: Client, arguments: dict[str, Any], state: str, tool: str = "mcp_test_note") -> Any:
    return await client.session.call_tool(
        tool, arguments, input_responses={"approval": YES}, request_state=state, allow_input_required=True
    )


async def test_a_state_that_is_altered_or_of_another_call_is_refused(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client("2026-07-28", answer=Person(YES), subject="ana", forms=True) as client:
        state = await first_round(client, {"text": "milk"})
        assert "milk" not in state
        for arguments, sent, tool in (
            ({"text": "milk"}, state[:-4] + ("AAAA" if state[-4:] != "AAAA" else "BBBB"), "mcp_test_note"),
            ({"text": "milk"}, json.dumps({"key": "x", "run_id": "r", "tool_call_id": "t"}), "mcp_test_note"),
            ({"text": "gin"}, state, "mcp_test_note"),
            ({}, state, "mcp_test_look"),
        ):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await second_round(client, arguments, sent, tool)
    assert place.effects == []


async def test_a_yes_to_one_approval_is_no_yes_to_another(
    make_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    place, made = await make_place().pin(), Caller.call

    async def of_another_call(caller: Caller, proposal: Proposal) -> types.CallToolResult | Asked:
        return await made(caller, replace(proposal, arguments={"text": "gin"}, ids=None))

    async with place.client("2026-07-28", answer=Person(YES), subject="ana", forms=True) as client:
        state = await first_round(client, {"text": "milk"})
        monkeypatch.setattr(Caller, "call", of_another_call)
        anew = await second_round(client, {"text": "milk"}, state)
    assert isinstance(anew, types.InputRequiredResult), "it is asked for anew"
    assert '"gin"' in str(anew.input_requests)
    async with place.riskgate("ana") as gate:
        states = [one.state for one in (await gate.list_approvals(thread_id=place.thread)).approvals]
    assert states == ["PENDING", "PENDING"]
    assert place.effects == []


async def test_a_state_that_is_replayed_runs_nothing_again(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client("2026-07-28", answer=Person(YES), subject="ana", forms=True) as client:
        state = await first_round(client, {"text": "milk"})
        ran = await second_round(client, {"text": "milk"}, state)
        again = await second_round(client, {"text": "milk"}, state)
    assert not ran.is_error
    assert again.is_error
    assert "run" in texts(again)
    assert place.effects == ["milk"]


async def test_a_state_of_another_principal_is_refused(make_place: Callable[..., Place]):
    place = await make_place().pin()
    async with place.client("2026-07-28", answer=Person(YES), subject="ana", forms=True) as client:
        state = await first_round(client, {"text": "milk"})
    bruno = place.options(subject="bruno", forms=True)
    async with place.client("2026-07-28", answer=Person(YES), options=bruno) as client:
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await second_round(client, {"text": "milk"}, state)
    assert place.effects == []


async def test_two_proxies_of_one_server_take_each_others_states_and_run_the_call_once(
    make_place: Callable[..., Place],
):
    place = await make_place().pin()
    options = place.options(subject="ana", forms=True)
    async with (
        place.client("2026-07-28", answer=Person(YES), options=options) as one,
        place.client("2026-07-28", answer=Person(YES), options=options) as other,
    ):
        state = await first_round(one, {"text": "milk"})
        ran = await second_round(other, {"text": "milk"}, state)
        again = await second_round(one, {"text": "milk"}, state)
    assert not ran.is_error
    assert again.is_error
    assert place.effects == ["milk"]


async def test_a_question_is_in_spanish_where_the_proxy_speaks_it(
    make_place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RISKGATE_LANG", "es")
    place = await make_place().pin()
    ana = Person(DECLINE)
    async with place.client("legacy", answer=ana, subject="ana", forms=True) as client:
        told = await client.call_tool(*NOTE)
    assert ana.asked[0].message.startswith("¿Puede ejecutarse mcp_test_note")
    assert "el usuario dijo que no" in texts(told)


async def test_a_calls_id_tells_nothing_of_its_arguments(make_place: Callable[..., Place]):
    place, other = await make_place().pin(), GateTarget("127.0.0.1:1")
    async with assembled(place.options(gate=other)) as server:
        assert server.name == "riskgate-test"
    async with place.client() as client:
        await client.call_tool(*NOTE)
    async with place.riskgate() as gate:
        (approval,) = (await gate.list_approvals(thread_id=place.thread)).approvals
    keys = {(place.state.path / name).read_bytes() for name in ("calls.key", "request-state.key")}
    assert len(keys) == 2
    assert all(len(key) == 32 for key in keys)
    assert "milk" not in approval.tool_call_id

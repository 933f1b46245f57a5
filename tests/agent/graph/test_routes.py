"""Every node's routes, and the wrapper that enforces the routes a node declares."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from langgraph.graph import START
from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_agent.graph.core.events import stable_id
from phylactery_agent.graph.core.routing import NodeFunction, RouteError, checked, targets_of
from phylactery_agent.graph.core.state import AgentState, new_run_input, reentry_input
from phylactery_agent.graph.secured.builder import NODES, RECURSION_LIMIT, SECURED
from phylactery_agent.graph.secured.nodes.approval_handler import approval_handler
from phylactery_agent.graph.secured.nodes.await_approval import await_approval
from phylactery_agent.graph.secured.nodes.executor import executor
from phylactery_agent.graph.secured.nodes.finalizer import finalizer
from phylactery_agent.graph.secured.nodes.interpreter import interpreter
from phylactery_agent.graph.secured.nodes.planner import planner
from phylactery_agent.graph.secured.nodes.risk_gate import risk_gate
from phylactery_agent.graph.secured.nodes.router import route, router
from phylactery_agent.graph.secured.nodes.supervisor import supervisor
from phylactery_agent.graph.secured.nodes.tools import tools
from phylactery_agent.ports import Hydration, Turn, TurnContext

from tests.support.agent.graph import Chat, strict_saver


def turn(text: str, intent: str = "task") -> Turn:
    return Turn("tn_1", "rn_1", "th_1", "ana", "acme", text, "es", intent, "tool_intent")


def state_of(text: str, intent: str = "task", **fields: Any) -> AgentState:
    return cast("AgentState", {**new_run_input(turn(text, intent)), **fields})


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    made = Chat(tmp_path)
    (made.sandbox / "notas.txt").write_text("hola mundo")
    return made


class Node:
    """Runs one node on a state, the way the graph would."""

    def __init__(self, chat: Chat) -> None:
        self.runtime: Runtime[TurnContext] = Runtime(context=chat._context("es"))

    async def __call__(self, function: NodeFunction, state: AgentState) -> tuple[str, AgentState]:
        command = await function(state, self.runtime)
        assert isinstance(command.goto, str)
        return command.goto, cast("AgentState", {**state, **cast("dict[str, Any]", command.update or {})})


@pytest.fixture
def node(chat: Chat) -> Node:
    return Node(chat)


async def planned(node: Node, text: str = "lee notas.txt") -> AgentState:
    _, state = await node(planner, state_of(text))
    _, state = await node(supervisor, state)
    return state


async def proposed(node: Node, text: str = "lee notas.txt") -> AgentState:
    return (await node(executor, await planned(node, text)))[1]


def test_the_graph_has_the_seeds_nodes_and_draws_what_they_declare() -> None:
    drawn = SECURED.compile(strict_saver()).get_graph()
    assert set(NODES) == set(drawn.nodes) - {START, "__end__"}
    edges = {(edge.source, edge.target) for edge in drawn.edges}
    assert edges == {(START, "Router")} | {
        (name, target) for name, function in NODES.items() for target in targets_of(function)
    }


def test_the_recursion_limit_is_set_and_has_room_for_a_plan_that_was_approved_at_once() -> None:
    config: Any = SECURED.compile(strict_saver()).config
    assert config["recursion_limit"] == RECURSION_LIMIT == 30 + 12 * 6


def test_every_declared_target_is_a_node_or_the_end() -> None:
    for function in NODES.values():
        assert set(targets_of(function)) <= set(NODES) | {"__end__"}


async def _wanders(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Supervisor"]]:
    return Command(goto=cast("Any", "Supervisr"))


async def _silent(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Any]:
    return Command(goto="Supervisor")


async def test_a_node_that_goes_where_it_did_not_declare_raises_instead_of_ending_the_run(chat: Chat) -> None:
    with pytest.raises(RouteError, match="Supervisr"):
        await checked("Router", _wanders)(state_of("x"), Runtime(context=chat._context("es")))


async def _ends(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Finalizer"]]:
    return Command(goto="Finalizer")


async def test_a_shared_node_goes_to_the_name_its_target_has_in_this_graph(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("phylactery_agent.graph.core.routing.get_config", lambda: {"metadata": {"langgraph_step": 1}})
    node = checked("Router", _ends, {"Finalizer": "finalizer"})
    assert (await node(state_of("x"), Runtime(context=chat._context("es")))).goto == "finalizer"


def test_a_node_that_declares_no_targets_is_refused_when_the_graph_is_built() -> None:
    with pytest.raises(RouteError, match="Literal"):
        checked("Router", _silent)


async def test_a_typo_in_a_node_fails_the_whole_invocation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(SECURED)  # which is not compiled yet
    monkeypatch.setitem(NODES, "Planner", _wanders)
    with pytest.raises(RouteError, match="Supervisr"):
        await Chat(tmp_path, spec=spec).say("lee notas.txt")


def test_a_new_run_resets_every_field_and_a_re_entry_only_brings_the_message() -> None:
    fresh = new_run_input(turn("lee a.txt"))
    assert set(fresh) == set(AgentState.__annotations__)
    assert json.loads(json.dumps(fresh)) == fresh
    again = reentry_input(turn("APROBAR ap_x1 ________", "approval_reply"))
    brought = {
        "turn_id", "language", "intent", "pathway", "incoming", "run_status", "finish_reason", "reply",
        "memory_degraded",
    }  # fmt: skip
    assert set(again) == brought
    spoken = replace(turn("¿y mi perro?"), hydration=Hydration())
    assert set(reentry_input(spoken)) == brought | {"memories", "profile"}
    unread = reentry_input(replace(spoken, hydration=Hydration(degraded="MEMORY_UNAVAILABLE")))
    assert (set(unread), unread["memory_degraded"]) == (brought, "MEMORY_UNAVAILABLE")


WAITING = {"awaiting_approval": True, "approval_id": "ap_waiting0"}


@pytest.mark.parametrize(
    ("text", "intent", "fields", "target", "reason"),
    [
        ("APROBAR ap_waiting0 ________", "approval_reply", WAITING, "ApprovalHandler", "APPROVAL_REPLY"),
        ("REJECT ap_waiting0", "approval_reply", WAITING, "ApprovalHandler", "APPROVAL_REPLY"),
        ("", "approval_decided", WAITING, "ApprovalHandler", "APPROVAL_REPLY"),
        ("lee otra.txt", "task", WAITING, "Supervisor", "APPROVAL_WAITING"),
        ("aprobar ap_waiting0 ________", "task", WAITING, "Supervisor", "APPROVAL_WAITING"),
        ("hola", "conversation", WAITING, "Supervisor", "APPROVAL_WAITING"),
        ("lee a.txt", "task", {"awaiting_user_input": True}, "Supervisor", "USER_INPUT_WAITING"),
        ("hola", "conversation", {"awaiting_user_input": True}, "Supervisor", "USER_INPUT_WAITING"),
        ("hola", "conversation", {}, "Finalizer", "CONVERSATION"),
        ("lee a.txt", "task", {}, "Planner", "NEW_TASK"),
        ("lee a.txt", "task", {"plan": [{"id": "s1"}]}, "Supervisor", "TASK_RESUMED"),
        ("APROBAR ap_waiting0 ________", "approval_reply", {}, "Supervisor", "DEFAULT"),
        ("", "approval_decided", {}, "Supervisor", "DEFAULT"),
        ("x", "something else", {}, "Supervisor", "DEFAULT"),
    ],
)
async def test_router_dispatches_on_state_alone(
    node: Node, chat: Chat, *, text: str, intent: str, fields: dict[str, Any], target: str, reason: str
) -> None:
    goto, state = await node(router, state_of(text, intent, **fields))
    assert goto == target
    [routed] = chat.events.of("route_decided")
    assert (routed["node"], routed["reason"]) == (target, reason)
    assert [message["content"] for message in state["messages"]] == ([text] if text else [])
    assert chat.gate.calls == []


async def test_router_run_twice_takes_the_message_in_once(node: Node, chat: Chat) -> None:
    _, once = await node(router, state_of("lee a.txt"))
    _, twice = await node(router, once)
    assert once["messages"] == twice["messages"]
    assert chat.events.kinds() == ["route_decided"]


def test_router_reads_the_masked_reply_as_the_reply_it_was() -> None:
    assert route(state_of("APPROVE ap_waiting0 ________", "approval_reply", **WAITING))[0] == "ApprovalHandler"


async def test_planner_gives_its_plan_to_supervisor_with_a_step_for_every_clause(node: Node) -> None:
    goto, state = await node(planner, state_of('lee notas.txt y luego escribe "hola" en b.txt'))
    assert goto == "Supervisor"
    assert [(step["id"], step["tool"]) for step in state["plan"]] == [("s1", "read_file"), ("s2", "write_file")]
    assert {step["status"] for step in state["steps"].values()} == {"pending"}
    assert state["steps"]["s1"]["max_tries"] == 3


async def test_planner_that_understands_nothing_leaves_no_plan_and_says_so(node: Node) -> None:
    goto, state = await node(planner, state_of("haz el pino"))
    assert (goto, state["plan"], state["directive"]) == ("Supervisor", [], "unknown")
    assert "haz el pino" in state["notes"][0]
    assert "«ayuda» muestra lo que puedo hacer" in state["notes"][0]


async def test_supervisor_delegates_the_first_step_that_is_left(node: Node) -> None:
    _, state = await node(planner, state_of("lee notas.txt"))
    goto, state = await node(supervisor, state)
    assert (goto, state["current_step"], state["steps"]["s1"]["status"]) == ("Executor", "s1", "running")


async def test_supervisor_ends_a_plan_that_is_done(node: Node) -> None:
    state = await planned(node)
    state["steps"]["s1"]["status"] = "done"
    goto, state = await node(supervisor, state)
    assert (goto, state["run_status"], state["finish_reason"]) == ("Finalizer", "done", "ANSWERED")


async def test_supervisor_asks_where_nothing_was_understood(node: Node) -> None:
    _, state = await node(planner, state_of("haz el pino"))
    goto, state = await node(supervisor, state)
    assert (goto, state["run_status"], state["awaiting_user_input"]) == ("Finalizer", "suspended", True)


async def test_supervisor_with_nothing_to_do_says_so(node: Node) -> None:
    goto, state = await node(supervisor, state_of("x", "other"))
    assert (goto, state["finish_reason"], state["notes"]) == ("Finalizer", "ANSWERED", ["No queda nada por hacer."])


async def test_executor_proposes_the_same_call_under_the_same_id_when_run_twice(node: Node, chat: Chat) -> None:
    state = await planned(node)
    goto, once = await node(executor, state)
    _, twice = await node(executor, state)
    assert goto == "RiskGate"
    assert once["proposed_tool"] == twice["proposed_tool"]
    assert once["proposed_tool"] is not None
    assert once["proposed_tool"]["tool_call_id"] == stable_id("tc", "rn_1", "s1", "1")
    assert list(chat.ledger.rows) == [once["proposed_tool"]["tool_call_id"]]
    assert len(chat.events.of("tool_proposed")) == 1
    assert (once["plan"], once["steps"]) == (state["plan"], state["steps"])


async def test_executor_proposes_another_id_at_the_next_try(node: Node) -> None:
    state = await planned(node)
    first = (await node(executor, state))[1]["proposed_tool"]
    state["steps"]["s1"]["tries"] = 1
    second = (await node(executor, state))[1]["proposed_tool"]
    assert first is not None
    assert second is not None
    assert first["tool_call_id"] != second["tool_call_id"]
    assert first["args_hash"] == second["args_hash"]


async def test_executor_proposes_nothing_the_session_may_not_use(node: Node, chat: Chat) -> None:
    state = await planned(node)
    state["security_context"]["allowed_tools"] = ["echo"]
    goto, state = await node(executor, state)
    assert goto == "Interpreter"
    assert chat.ledger.rows == {}
    assert state["last_tool_result"] is not None
    assert state["last_tool_result"]["metadata"]["error_code"] == "TOOL_NOT_ALLOWED"


@pytest.mark.parametrize(
    ("decision", "target"), [("ALLOW", "Tools"), ("AUTH_REQUIRED", "AwaitApproval"), ("BLOCKED", "Interpreter")]
)
async def test_risk_gate_goes_where_the_decision_says(
    node: Node, chat: Chat, decision: Literal["ALLOW", "AUTH_REQUIRED", "BLOCKED"], target: str
) -> None:
    chat.gate.policy["read_file"] = decision
    state = await proposed(node)
    goto, once = await node(risk_gate, state)
    _, twice = await node(risk_gate, state)
    assert goto == target
    assert {**once, "budgets": None} == {**twice, "budgets": None}
    assert [told["decision"] for told in chat.events.of("risk_decision")] == [decision]
    assert once["audit_trail"] == ["de_0"]
    assert "permit" not in json.dumps(once)


async def test_risk_gate_stores_neither_code_nor_arguments_of_an_approval(node: Node, chat: Chat) -> None:
    _, state = await node(risk_gate, await proposed(node, 'escribe "hola" en b.txt'))
    assert state["approval_id"] == "ap_waiting0"
    assert state["approval_hash"] == chat.gate.approvals["ap_waiting0"].args_hash
    assert chat.gate.codes["ap_waiting0"] not in json.dumps(state)


async def test_risk_gate_runs_nothing_when_the_gate_is_away(node: Node, chat: Chat) -> None:
    chat.gate.available = False
    goto, state = await node(risk_gate, await proposed(node))
    assert (goto, state["run_status"], state["finish_reason"]) == ("Finalizer", "failed", "GATE_UNAVAILABLE")
    assert state["proposed_tool"] is None


@pytest.mark.parametrize("part", ["args", "args_hash"])
async def test_a_proposal_altered_on_its_way_is_blocked_by_the_gate(node: Node, part: str) -> None:
    state = await proposed(node)
    tool: Any = state["proposed_tool"]
    tool[part] = {"path": "other.txt"} if part == "args" else "sha256:" + "0" * 64
    goto, state = await node(risk_gate, state)
    assert goto == "Interpreter"
    assert state["last_tool_result"] is not None
    assert state["last_tool_result"]["metadata"]["error_code"] == "INTEGRITY_MISMATCH"


async def test_await_approval_tells_what_waits_and_suspends(node: Node, chat: Chat) -> None:
    _, state = await node(risk_gate, await proposed(node, 'escribe "hola" en b.txt'))
    goto, once = await node(await_approval, state)
    await node(await_approval, state)
    assert (goto, once["run_status"], once["finish_reason"]) == ("Finalizer", "suspended", "AWAITING_APPROVAL")
    assert chat.events.of("approval_required") == [
        {
            "approval_id": "ap_waiting0",
            "tool": "write_file",
            "action": "escribir un archivo o añadirle líneas al final",
            "language": "es",
            "risk": "medium",
            "approval_class": "self",
            "expire_time": "2026-09-21T14:13:20Z",
        }
    ]


async def test_an_approval_of_another_person_is_asked_for_in_other_words(node: Node, chat: Chat) -> None:
    chat.gate.approval_class = "peer"
    _, state = await node(risk_gate, await proposed(node, 'escribe "hola" en b.txt'))
    _, state = await node(await_approval, state)
    assert "otra persona" in state["notes"][-1]


async def waiting(node: Node, text: str, intent: str = "approval_reply") -> AgentState:
    _, state = await node(risk_gate, await proposed(node, 'escribe "hola" en b.txt'))
    return cast("AgentState", {**state, "incoming": {"id": "tn_2", "text": text}, "intent": intent})


@pytest.mark.parametrize(
    ("approval", "target", "directive"),
    [
        ("APPROVED", "Tools", ""),
        ("REJECTED", "Supervisor", "rejected"),
        ("EXPIRED", "Supervisor", "expired"),
        ("CANCELLED", "Supervisor", "cancelled"),
        ("PENDING", "Finalizer", ""),
    ],
)
async def test_approval_handler_acts_on_what_was_decided_elsewhere(
    node: Node, chat: Chat, approval: str, target: str, directive: str
) -> None:
    state = await waiting(node, "", "approval_decided")
    chat.gate.decide_elsewhere("ap_waiting0", approval)
    goto, state = await node(approval_handler, state)
    assert (goto, state["directive"]) == (target, directive)
    assert state["awaiting_approval"] == (target == "Finalizer")
    if directive:
        assert (state["proposed_tool"], state["approval_id"], state["approval_hash"]) == (None, None, None)
        assert [row.state for row in chat.ledger.rows.values()] == ["denied"]


async def test_approval_handler_run_twice_rejects_once(node: Node, chat: Chat) -> None:
    state = await waiting(node, "RECHAZAR ap_waiting0")
    once, twice = await node(approval_handler, state), await node(approval_handler, state)
    assert once == twice
    assert chat.gate.approvals["ap_waiting0"].state == "REJECTED"


async def allowed(node: Node, text: str = "lee notas.txt") -> AgentState:
    return (await node(risk_gate, await proposed(node, text)))[1]


async def test_tools_goes_to_interpreter_and_run_twice_uses_the_recorded_result(node: Node, chat: Chat) -> None:
    state = await allowed(node, "count one")
    from tests.support.agent import counter_tool as counter

    counter.counted.clear()
    goto, once = await node(tools, state)
    _, twice = await node(tools, state)
    assert goto == "Interpreter"
    assert once["last_tool_result"] == twice["last_tool_result"]
    assert counter.counted == ["one"]


async def test_tools_sends_a_call_that_now_needs_an_approval_back_to_wait(node: Node, chat: Chat) -> None:
    state = await allowed(node)
    chat.gate.policy["read_file"] = "AUTH_REQUIRED"
    chat.gate.records.clear()
    node.runtime.context.allowed.clear()  # as in a process that came back
    goto, state = await node(tools, state)
    assert (goto, state["awaiting_approval"], state["approval_id"]) == ("AwaitApproval", True, "ap_waiting0")


async def test_interpreter_clears_the_proposal_and_judges_the_step(node: Node, chat: Chat) -> None:
    _, state = await node(tools, await allowed(node))
    goto, once = await node(interpreter, state)
    _, twice = await node(interpreter, state)
    assert goto == "Supervisor"
    assert once == twice
    assert (once["proposed_tool"], once["steps"]["s1"]["status"], once["steps"]["s1"]["tries"]) == (None, "done", 1)
    assert len(chat.events.of("tool_result")) == 1


async def test_finalizer_run_twice_says_it_once(node: Node, chat: Chat) -> None:
    state = state_of("hola", "conversation")
    goto, once = await node(finalizer, state)
    _, twice = await node(finalizer, state)
    assert (goto, once["reply"]) == ("__end__", twice["reply"])
    assert (once["run_status"], once["finish_reason"]) == ("done", "ANSWERED")

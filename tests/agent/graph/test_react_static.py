"""The react graph without a model: byte-identical replies for the same message, and every effect gated."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START
from phylactery_agent.graph.core.routing import NodeFunction, targets_of
from phylactery_agent.graph.react.builder import NODES, REACT, react_with
from phylactery_agent.graph.react.state import ReactOptions
from phylactery_agent.graph.react.static import echo_pass, passes
from phylactery_agent.graph.secured.nodes.approval_handler import approval_handler
from phylactery_agent.graph.secured.nodes.await_approval import await_approval
from phylactery_agent.graph.secured.nodes.executor import executor
from phylactery_agent.graph.secured.nodes.interpreter import interpreter
from phylactery_agent.graph.secured.nodes.risk_gate import risk_gate
from phylactery_agent.graph.secured.nodes.tools import tools
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.agent import counter_tool as counter
from tests.support.agent.graph import Chat, ended, said, strict_saver

GOLDEN = Path(__file__).parents[1] / "golden" / "react_static_v1.json"
SEED_FIELDS = ("working_memory", "artifacts", "errors", "confidence", "step", "max_steps", "final")


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    counter.counted.clear()
    counter.behaviour.update(flaky_failures=0, count_raises=0)
    made = Chat(tmp_path, spec=REACT)
    (made.sandbox / "notas.txt").write_text("hola mundo")
    return made


def path(chat: Chat, state: dict[str, Any]) -> list[str]:
    return [f"{planned['tool']}:{state['steps'][planned['id']]['status']}" for planned in state["plan"]]


def test_the_graph_draws_what_its_nodes_declare_and_has_the_seeds_nodes() -> None:
    drawn = REACT.compile(strict_saver()).get_graph()
    seed = {"planner", "reasoner", "tool_selector", "tool_executor", "critic", "finalizer", "model", "fallback", "sync"}
    assert seed | {"Router", "RiskGate", "AwaitApproval", "ApprovalHandler", "Tools", "Interpreter"} == set(NODES)
    assert {(edge.source, edge.target) for edge in drawn.edges} == {(START, "Router")} | {
        (name, REACT.names.get(target, target)) for name, function in NODES.items() for target in targets_of(function)
    }
    assert ("finalizer", END) in REACT.edges
    assert {target for source, target in REACT.edges if source == "tool_executor"} == {"RiskGate", "Interpreter"}
    assert [source for source, target in REACT.edges if target == "Tools"] == ["RiskGate", "ApprovalHandler"]


@pytest.mark.parametrize(
    ("name", "shared"),
    [
        ("tool_executor", executor),
        ("RiskGate", risk_gate),
        ("AwaitApproval", await_approval),
        ("ApprovalHandler", approval_handler),
        ("Tools", tools),
    ],
)
def test_wherever_a_shared_node_may_go_this_graph_knows_the_way(name: str, shared: NodeFunction) -> None:
    own = {target for source, target in REACT.edges if source == name}
    ways = {"Finalizer": "finalizer", "Supervisor": "critic"}
    assert {ways.get(target, target) for target in targets_of(shared)} == own


def test_the_interpreter_reports_to_whoever_decides() -> None:
    assert set(targets_of(interpreter)) == {"Supervisor"}
    assert set(targets_of(NODES["Interpreter"])) == {"tool_executor", "reasoner", "model", "sync", "critic"}


def golden() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


async def test_the_golden_messages_come_to_what_was_recorded_byte_for_byte(tmp_path: Path) -> None:
    recorded = []
    for number, case in enumerate(golden()):
        chat = Chat(tmp_path / str(number), spec=REACT)
        (chat.sandbox / "notas.txt").write_text("hola mundo")
        chat.gate.policy["write_file"] = "ALLOW"
        state = await chat.say(case["text"])
        recorded.append(
            {
                "text": case["text"],
                "reply": said(state),
                "ended": list(ended(state)),
                "events": chat.events.told,
                "state": {name: state[name] for name in SEED_FIELDS},
            }
        )
    written = json.dumps(recorded, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    assert written == GOLDEN.read_text(encoding="utf-8")


def test_echo_is_the_first_pass_whatever_is_asked_and_is_not_run_twice() -> None:
    tools = ToolRegistry()
    read = passes("lee notas.txt y luego repite adiós", tools)
    assert [chosen["tool"] for chosen in read] == ["echo", "read_file", "echo"]
    assert passes("echo hi", tools)[0]["args"] == {"text": "hi"}
    assert len(passes("echo hi", tools)) == len(passes("haz el pino", tools)) == 1
    assert echo_pass("haz el pino", tools)["args"] == {"text": "haz el pino"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("hola", "¡Hola! ¿En qué te ayudo?"),
        ("lee notas.txt", "Contenido de «notas.txt»:\nhola mundo"),
        ("repite buenos días", "buenos días"),
    ],
)
async def test_a_persons_own_words_are_not_said_back_unless_that_is_asked_for(
    chat: Chat, words: str, told: str
) -> None:
    (chat.sandbox / "notas.txt").write_text("hola mundo")
    assert said(await chat.say(words)) == told


async def test_the_path_is_planner_reasoner_selector_executor_reasoner_critic_finalizer(chat: Chat) -> None:
    seen: list[str] = []
    nodes = {name: _noting(name, function, seen) for name, function in NODES.items()}
    chat.graph = replace(REACT, nodes=nodes).compile(strict_saver())
    await chat.say("echo hi")
    call = ["tool_selector", "tool_executor", "RiskGate", "Tools", "Interpreter", "reasoner"]
    assert seen == ["Router", "planner", "reasoner", *call, "critic", "finalizer"]


def _noting(name: str, function: Any, seen: list[str]) -> Any:
    @wraps(function)
    async def noting(state: Any, runtime: Any) -> Any:
        seen.append(name)
        return await function(state, runtime)

    return noting


async def test_a_blocked_call_stops_the_episode_and_what_is_left_is_told(chat: Chat) -> None:
    chat.gate.policy["read_file"] = "BLOCKED"
    state = await chat.say("lee notas.txt y luego repite adiós")
    assert ended(state) == ("done", "BLOCKED")
    assert path(chat, state) == ["echo:done", "read_file:blocked"]
    assert "No lo he hecho: la política dice que no" in said(state)
    assert "Queda sin hacer: repite adiós" in said(state)
    assert state["metadata"]["issues"] == ["errors"]
    assert state["final"]["evidence_keys"] == ["s1.echo"]
    assert [row.state for row in chat.ledger.rows.values()] == ["finished", "denied"]


async def test_what_is_understood_in_part_is_asked_about_and_not_done(chat: Chat) -> None:
    state = await chat.say("write hello to a.txt unless it exists")
    assert "I have done nothing. If you want it now, ask without the condition." in said(state)
    assert path(chat, state) == ["echo:done"]


async def test_what_a_tool_that_is_off_would_do_is_told_as_that(chat: Chat) -> None:
    chat.tools.object_to("send_email", "test", "NOT_CONFIGURED")
    state = await chat.say("send an email to ana@example.com saying hi")
    assert "I can't send an e-mail here. (For the operator: set AGENT_SMTP_HOST.)" in said(state)
    assert path(chat, state) == ["echo:done"]


async def test_a_call_that_fails_is_an_error_and_is_not_tried_again(chat: Chat) -> None:
    state = await chat.say("read nothing.txt and then echo bye")
    assert ended(state) == ("failed", "TOOL_FAILED")
    assert [(error["tool"], error["code"]) for error in state["errors"]] == [("read_file", "NOT_FOUND")]
    assert said(state).count("I could not complete") == 1
    assert "Not done: echo bye" in said(state)
    assert state["confidence"] < 0.5


async def test_an_effect_waits_for_a_yes_and_runs_once_under_it(chat: Chat) -> None:
    state = await chat.say("escribe hola en b.txt")
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert state["final"] is None
    state = await chat.say("sí")
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert "No está claro a qué respondes" in said(state)
    state = await chat.say(f"APROBAR ap_waiting0 {chat.gate.codes['ap_waiting0']}")
    assert ended(state) == ("done", "ANSWERED")
    assert (chat.sandbox / "b.txt").read_text() == "hola"
    assert state["final"]["evidence_keys"] == ["s1.echo", "s2.write_file"]
    assert len(chat.gate.redemptions) == 2


async def test_two_approvals_of_one_episode_come_one_after_the_other(chat: Chat) -> None:
    await chat.say("escribe uno en a.txt y luego escribe dos en b.txt")
    assert [row.state for row in chat.ledger.rows.values()] == ["finished", "proposed"]
    state = await chat.say(f"APROBAR ap_waiting0 {chat.gate.codes['ap_waiting0']}")
    assert (ended(state), list(chat.gate.approvals)) == (
        ("suspended", "AWAITING_APPROVAL"),
        ["ap_waiting0", "ap_waiting1"],
    )
    assert ((chat.sandbox / "a.txt").read_text(), (chat.sandbox / "b.txt").exists()) == ("uno", False)
    state = await chat.say(f"APROBAR ap_waiting1 {chat.gate.codes['ap_waiting1']}")
    assert (ended(state), (chat.sandbox / "b.txt").read_text()) == (("done", "ANSWERED"), "dos")


@pytest.mark.parametrize(
    ("standing", "reason"), [("REJECTED", "REJECTED"), ("EXPIRED", "EXPIRED"), ("CANCELLED", "CANCELLED")]
)
async def test_an_approval_closed_without_a_yes_ends_the_episode_and_nothing_more_is_begun(
    chat: Chat, standing: str, reason: str
) -> None:
    await chat.say("escribe uno en a.txt y luego repite adiós")
    approval = chat.gate.approvals["ap_waiting0"]
    chat.gate.approvals["ap_waiting0"] = replace(approval, state=standing)
    state = await chat.wake()
    assert ended(state) == ("done", f"APPROVAL_{standing}")
    assert (state["approval_id"], state["proposed_tool"], state["awaiting_approval"]) == (None, None, False)
    assert not (chat.sandbox / "a.txt").exists()
    assert [row.state for row in chat.ledger.rows.values()] == ["finished", "denied"]
    assert path(chat, state) == ["echo:done", "write_file:blocked"]


async def test_an_answer_to_nothing_is_explained_and_asks_for_no_echo(chat: Chat) -> None:
    state = await chat.say("APROBAR ap_nothing code_1234")
    assert ended(state) == ("done", "NOTHING_WAITS")
    assert "no es tuyo" in said(state)
    assert (chat.ledger.rows, state["final"]) == ({}, None)


async def test_a_gate_that_is_away_runs_nothing_and_says_so(chat: Chat) -> None:
    chat.gate.available = False
    state = await chat.say("echo hi")
    assert ended(state) == ("failed", "GATE_UNAVAILABLE")
    assert chat.gate.redemptions == {}
    assert state["final"]["evidence_keys"] == []


@pytest.mark.parametrize("steps", [1, 2])
async def test_the_steps_are_bounded_and_the_stop_is_named(tmp_path: Path, steps: int) -> None:
    chat = Chat(tmp_path, spec=react_with(ReactOptions(max_steps=steps)))
    state = await chat.say("repite uno y luego repite dos y luego repite tres")
    assert ended(state) == ("failed", "STEP_LIMIT")
    assert (len(state["plan"]), state["step"]) == (steps, steps + 1)
    assert "necesita más pasos" in said(state)
    assert "Queda sin hacer" in said(state)


async def test_the_supersteps_of_a_turn_are_bounded_too(chat: Chat) -> None:
    words = " y luego ".join(f"repite {number}" for number in range(8))
    state = await chat.say(words)
    assert ended(state) == ("failed", "STEP_LIMIT")
    assert state["budgets"]["supersteps"] <= 25


async def test_an_effect_in_doubt_ends_the_episode_and_nothing_follows_it(chat: Chat) -> None:
    counter.behaviour["count_raises"] = 1
    state = await chat.say("count one and then echo bye")
    assert ended(state) == ("failed", "EFFECT_IN_DOUBT")
    assert counter.counted == ["one"]
    assert "echo bye" not in [planned["tool"] for planned in state["plan"]]
    assert [row.state for row in chat.ledger.rows.values()] == ["finished", "in_doubt"]


async def test_a_large_output_is_a_pointer_in_the_evidence_too(chat: Chat) -> None:
    chat.evict_over_chars = 1_000
    (chat.sandbox / "grande.txt").write_text("0123456789" * 300)
    state = await chat.say("lee grande.txt")
    [pointer] = chat.outputs.stored
    assert state["working_memory"]["s2.read_file"] == f"[EVICTED size=3000] See {pointer}"
    assert [artifact["pointer"] for artifact in state["artifacts"]] == ["", pointer]


async def test_a_secret_in_a_result_does_not_go_out(chat: Chat) -> None:
    key = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
    (chat.sandbox / "clave.txt").write_text(key)
    state = await chat.say("lee clave.txt")
    assert key not in said(state)
    assert key not in state["final"]["summary"]
    chat.inspector.available = False
    state = await chat.say("lee notas.txt")
    assert "hola mundo" not in said(state)


async def test_the_state_is_plain_json(chat: Chat) -> None:
    state = await chat.say("escribe hola en b.txt")
    assert json.loads(json.dumps(state)) == state
    assert set(REACT.state.__annotations__) <= set(state)

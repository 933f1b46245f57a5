"""GraphService: drawings match the edges nodes are held to, and a run keeps the version of its graph."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict

import grpc
import pytest
from grpc import aio
from langgraph.graph import END, START
from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery.agent.v1 import graph_pb2, graph_pb2_grpc
from phylactery_agent.graph.core import registry
from phylactery_agent.graph.core.events import AWAITING_APPROVAL, EFFECT_IN_DOUBT, GATE_UNAVAILABLE
from phylactery_agent.graph.core.guards import LOOPS, STEP_LIMIT, TOOL_CALL_LIMIT
from phylactery_agent.graph.core.registry import GRAPH_NAMES, SPECS, Graphs, ServedGraph, UnknownGraphError
from phylactery_agent.graph.core.routing import RouteError, targets_of
from phylactery_agent.graph.core.spec import GraphSpec, mermaid
from phylactery_agent.graph.core.state import AgentState
from phylactery_agent.graph.react.model import MODEL_CALL_INVALID
from phylactery_agent.graph.react.state import TOOL_ROUND_LIMIT
from phylactery_agent.graph.react.static import BLOCKED, TOOL_FAILED
from phylactery_agent.ports import TurnContext
from phylactery_agent.runtime.turn.canned_replies import GRAPH_CHANGED

from tests.support.agent.bench import Bench
from tests.support.agent.graph import strict_saver
from tests.support.agent.stores import BOUND, Stores, call
from tests.support.agent.system import DONE, FAILED, SUSPENDED, Person, System, refused

PAGE = Path(__file__).resolve().parents[3] / "docs" / "graphs.md"
each_graph = pytest.mark.parametrize("spec", SPECS.values(), ids=GRAPH_NAMES)


def graphs_of(system: System) -> graph_pb2_grpc.GraphServiceStub:
    return graph_pb2_grpc.GraphServiceStub(system.agent_channel)


async def test_the_graphs_are_listed_with_the_default_first(system: System, ana: Person) -> None:
    listed = await graphs_of(system).ListGraphs(graph_pb2.ListGraphsRequest(), metadata=ana.metadata)
    assert listed.graphs[0].name == "secured"
    assert [graph.is_default for graph in listed.graphs] == [True] + [False] * (len(GRAPH_NAMES) - 1)
    assert {graph.name for graph in listed.graphs} == set(GRAPH_NAMES)
    for graph in listed.graphs:
        assert (graph.version, bool(graph.description), bool(graph.description_es)) == (
            SPECS[graph.name].version,
            True,
            True,
        )


@each_graph
async def test_a_graph_is_answered_as_its_nodes_declare_it(system: System, ana: Person, spec: GraphSpec) -> None:
    asked = graph_pb2.GetGraphRequest(name=spec.name)
    shown = await graphs_of(system).GetGraph(asked, metadata=ana.metadata)
    assert list(shown.nodes) == list(spec.nodes)
    assert {(edge.source, edge.target) for edge in shown.edges} == {(START, spec.entry)} | {
        (name, spec.names.get(target, target))
        for name, function in spec.nodes.items()
        for target in targets_of(function)
    }
    assert shown.mermaid == mermaid(spec)


async def test_no_name_is_the_default_and_a_name_nobody_knows_is_not_found(system: System, ana: Person) -> None:
    stub = graphs_of(system)
    assert (await stub.GetGraph(graph_pb2.GetGraphRequest(), metadata=ana.metadata)).graph.name == "secured"
    with pytest.raises(aio.AioRpcError) as caught:
        await stub.GetGraph(graph_pb2.GetGraphRequest(name="secure"), metadata=ana.metadata)
    why = refused(caught.value)
    assert (why.code, why.reason) == (grpc.StatusCode.NOT_FOUND, "GRAPH_NOT_FOUND")
    assert why.metadata == {"graph": "secure"}
    with pytest.raises(UnknownGraphError):
        Graphs(strict_saver()).get("secure")


@each_graph
def test_every_node_and_every_edge_is_drawn_and_nothing_else(spec: GraphSpec) -> None:
    drawn = mermaid(spec)
    names = dict(re.findall(r"^  (n\d+)\(?\[([^\]]+)\]\)?$", drawn, re.MULTILINE))
    names = {number: {"start": START, "end": END}.get(name.strip("()"), name) for number, name in names.items()}
    boxes = re.findall(r"^  (n\d+)[(\[]", drawn, re.MULTILINE)
    assert len(boxes) == len(set(boxes)) == len(spec.nodes) + 2
    arrows = re.findall(r"^  (n\d+) --> (n\d+)$", drawn, re.MULTILINE)
    assert sorted((names[source], names[target]) for source, target in arrows) == sorted(spec.drawn_edges)
    assert drawn.count("\n") == 1 + len(boxes) + len(arrows)


async def _first(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["second"]]:
    return Command(goto="second")


async def _second(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["__end__"]]:
    return Command(goto="__end__")


async def _astray(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["third"]]:
    return Command(goto="third")


class Inner(TypedDict):
    status: Literal["a"]


class WiderInner(TypedDict):
    status: Literal["a", "b"]


class Outer(TypedDict):
    steps: dict[str, Inner]


class WiderOuter(TypedDict):
    steps: dict[str, WiderInner]


def small(**changes: Any) -> GraphSpec:
    fields: dict[str, Any] = {
        "name": "small",
        "nodes": {"first": _first, "second": _second},
        "entry": "first",
        "state": Outer,
    }
    return replace(SPECS["secured"], **{**fields, **changes})


def test_an_edge_to_no_node_and_a_node_without_an_edge_are_faults_at_once() -> None:
    with pytest.raises(RouteError, match="astray declares third"):
        small(nodes={"first": _first, "second": _second, "astray": _astray})
    with pytest.raises(RouteError, match="no edge leads to first"):
        small(entry="second")


def test_the_version_changes_with_nodes_edges_and_the_shape_of_the_state_and_with_nothing_else() -> None:
    assert small().version == small(recursion_limit=7, descriptions={"es": "otro", "en": "another"}).version
    other = [
        small(state=WiderOuter),
        small(nodes={"start": _first, "second": _second}, entry="start"),
        small(nodes={"first": _first, "second": _astray, "third": _second}),
    ]
    versions = {small().version, *(spec.version for spec in other)}
    assert len(versions) == 1 + len(other)
    assert all(re.fullmatch(r"[0-9a-f]{16}", version) for version in versions)


def _update(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent is another version from now on: the same graph, whose shape changed."""
    get = Graphs.get

    def updated(graphs: Graphs, name: str) -> ServedGraph:
        served = get(graphs, name)
        spec = replace(served.spec)
        spec.__dict__["version"] = "0123456789abcdef"
        return replace(served, spec=spec)

    monkeypatch.setattr(Graphs, "get", updated)


@pytest.mark.slow
async def test_a_run_that_waits_does_not_go_on_in_another_version_and_its_effect_never_happens(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await ana.say("escribe hola en b.txt")
    assert asked.run.status == SUSPENDED
    _update(monkeypatch)
    answered = await ana.say(f"APROBAR {asked.pending_approval.approval_id} {asked.pending_approval.code}")
    assert (answered.run.id, answered.run.status, answered.run.reason) == (asked.run.id, FAILED, "GRAPH_CHANGED")
    assert "me han actualizado" in answered.reply.text
    assert [call.state for call in answered.run.tool_calls] == ["denied"]
    assert not (system.sandbox / "b.txt").exists()
    again = await ana.say("repite hola")
    assert (again.run.status, again.reply.text) == (DONE, "hola")


async def test_a_run_goes_on_in_its_own_version_after_a_restart(system: System, ana: Person) -> None:
    asked = await ana.say("escribe hola en b.txt")
    await system.restart_agent()
    answered = await ana.say(f"APROBAR {asked.pending_approval.approval_id} {asked.pending_approval.code}")
    assert (answered.run.id, answered.run.status) == (asked.run.id, DONE)


async def test_a_run_of_a_graph_that_is_gone_ends_with_a_named_reason(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await ana.say("escribe hola en b.txt")

    def gone(_graphs: Graphs, name: str) -> ServedGraph:
        raise registry.UnknownGraphError(name)

    monkeypatch.setattr(Graphs, "get", gone)
    answered = await ana.say("sí")
    assert (answered.run.id, answered.run.reason) == (asked.run.id, "GRAPH_CHANGED")


async def test_a_turn_that_died_in_another_version_leaves_what_it_had_begun_in_doubt(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(stores)
    turn = await stores.accepted()
    first = await stores.claimed()
    ledger = stores.ledger(first.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="ek_1", bound=BOUND)
    stores.clock.advance(31)
    bench.graph.kept = {"turn_id": turn.turn_id, "run_id": first.lease.run_id}
    await bench.server().serve(await stores.claimed())
    assert (await stores.inbox.get(turn.turn_id)).run_reason == "GRAPH_CHANGED"
    assert bench.graph.calls == 0
    assert [(row.state, row.error_code) for row in await stores.runs.tool_calls(first.lease.run_id)] == [
        ("in_doubt", "RUN_ENDED")
    ]


async def test_a_turn_that_died_before_it_stood_anywhere_goes_on_in_the_version_there_is(stores: Stores) -> None:
    bench = Bench(stores)
    turn = await stores.accepted()
    await stores.claimed()
    stores.clock.advance(31)
    await bench.server().serve(await stores.claimed())
    assert (await stores.inbox.get(turn.turn_id)).run_status == "done"
    assert stores.rows("agent_runs", "graph, graph_version") == [("secured", SPECS["secured"].version)]


@each_graph
def test_the_page_about_graphs_shows_each_as_it_is(spec: GraphSpec) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {spec.name}\n", 1)[1]
    shown = section.split("```mermaid\n", 1)[1].split("```", 1)[0]
    assert shown == mermaid(spec), f"paste what `phylactery graphs show {spec.name}` prints"


def test_the_page_about_graphs_names_every_reason_react_can_end_with() -> None:
    page = PAGE.read_text(encoding="utf-8")
    reasons = {STEP_LIMIT, TOOL_CALL_LIMIT, TOOL_ROUND_LIMIT, MODEL_CALL_INVALID, BLOCKED, TOOL_FAILED, *LOOPS}
    known = {AWAITING_APPROVAL, EFFECT_IN_DOUBT, GATE_UNAVAILABLE, GRAPH_CHANGED}
    assert [reason for reason in reasons | known if reason not in page] == []

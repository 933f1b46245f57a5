"""Crashes in every node of the react graph, on both stores: the run recovers, and every effect counts once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal

import pytest
from phylactery_agent.checkpoints.saver import Checkpoints
from phylactery_agent.graph.react.builder import NODES, REACT

from tests.support.agent import counter_tool as counter
from tests.support.agent.graph import Chat, Died, dies_at
from tests.support.agent.scripted_model import ScriptedModel, proposes, says
from tests.support.agent.stores import Stores

When = Literal["before", "after"]
EFFECTS = {"tool_executor", "RiskGate", "Tools", "Interpreter"}
COMMON = ["Router", "planner", *sorted(EFFECTS), "AwaitApproval", "ApprovalHandler", "critic", "finalizer"]
STATIC = [*COMMON, "reasoner", "tool_selector"]
LLM = [*COMMON, "model", "sync"]


class Deaths:
    """The react graph whose process dies once, before or after a node of it did its work, the n-th time it runs."""

    def __init__(self, node: str, when: When, nth: int = 1) -> None:
        self.node, self.when, self.left = node, when, nth
        self.spec = replace(REACT, nodes={name: self._deadly(name, function) for name, function in NODES.items()})

    def _deadly(self, name: str, function: Callable[..., Any]) -> Any:
        @wraps(function)
        async def run(state: Any, runtime: Any) -> Any:
            if name == self.node:
                self.left -= 1
            if self.left == 0 and self.when == "before":
                self.left = -1
                raise Died(name)
            command = await function(state, runtime)
            if self.left == 0:
                self.left = -1
                raise Died(name)
            return command

        return run


def opened(folder: Path, stores: Stores, deaths: Deaths) -> Chat:
    counter.counted.clear()
    counter.behaviour.update(flaky_failures=0, count_raises=0)
    return Chat(folder, Checkpoints(stores.database), deaths.spec)


async def survived(chat: Chat, text: str) -> dict[str, Any]:
    """Say something; a process that dies comes back, as often as it takes."""
    try:
        return await chat.say(text)
    except Died:
        return await come_back(chat)


async def come_back(chat: Chat) -> dict[str, Any]:
    try:
        return await chat.go_on()
    except Died:
        return await come_back(chat)


def check(chat: Chat, state: dict[str, Any], deaths: Deaths) -> None:
    """Check what holds after every death: each effect once, ledger, state and events agree."""
    assert deaths.left < 0, f"{deaths.node} never ran so often"
    assert (state["run_status"], state["finish_reason"]) == ("done", "ANSWERED")
    assert (chat.sandbox / "b.txt").read_text() == "+\n"
    assert counter.counted == ["one"]
    assert {row.state for row in chat.ledger.rows.values()} == {"finished"}
    assert len(chat.gate.redemptions) == len(chat.ledger.rows) == len(state["plan"])
    assert list(chat.gate.approvals) == ["ap_waiting0"]
    assert len(chat.events.of("tool_proposed")) == len(chat.events.of("tool_result")) == len(chat.ledger.rows)
    assert len(chat.events.of("approval_required")) == 1
    assert sorted(state["working_memory"]) == state["final"]["evidence_keys"]
    assert [artifact["status"] for artifact in state["artifacts"]] == ["success"] * len(state["plan"])


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("node", STATIC)
async def test_static_a_death_in_any_node_loses_and_repeats_nothing(
    tmp_path: Path, stores: Stores, node: str, when: When
) -> None:
    deaths = Deaths(node, when)
    chat = opened(tmp_path, stores, deaths)
    state = await survived(chat, 'añade "+" a b.txt y luego count one')
    assert (state["run_status"], counter.counted) == ("suspended", [])
    state = await survived(chat, "APROBAR ap_waiting0 code-0-right")
    check(chat, state, deaths)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("node", LLM)
async def test_with_a_model_a_death_in_any_node_loses_and_repeats_nothing_and_pays_once(
    tmp_path: Path, stores: Stores, node: str, when: When
) -> None:
    deaths = Deaths(node, when)
    chat = opened(tmp_path, stores, deaths)
    model = ScriptedModel()
    chat.model = model
    write = ("write_file", {"path": "b.txt", "content": "+", "append": True})
    model.script(proposes(write, ("count", {"label": "one"})), says("Hecho."))
    state = await survived(chat, "añade y cuenta")
    assert (state["run_status"], counter.counted) == ("suspended", [])
    state = await survived(chat, "APROBAR ap_waiting0 code-0-right")
    check(chat, state, deaths)
    assert model.paid == ["react:1", "react:2"]
    assert [message["role"] for message in state["messages"]].count("tool") == 2


@pytest.mark.parametrize("nth", [2, 3])
@pytest.mark.parametrize("node", sorted(EFFECTS))
async def test_a_death_in_a_later_call_repeats_no_earlier_one(
    tmp_path: Path, stores: Stores, node: str, nth: int
) -> None:
    deaths = Deaths(node, "after", nth)
    chat = opened(tmp_path, stores, deaths)
    await survived(chat, 'añade "+" a b.txt y luego count one')
    check(chat, await survived(chat, "APROBAR ap_waiting0 code-0-right"), deaths)


@pytest.mark.parametrize("point", ["agent.6", "agent.7", "agent.8", "agent.9", "agent.10"])
async def test_a_death_inside_the_effect_appends_once(tmp_path: Path, stores: Stores, point: str) -> None:
    chat = Chat(tmp_path, Checkpoints(stores.database), REACT)
    await chat.say('añade "+" a b.txt')
    with dies_at(point), pytest.raises(Died):
        await chat.say("APROBAR ap_waiting0 code-0-right")
    state = await chat.go_on()
    assert (state["run_status"], state["finish_reason"]) == ("done", "ANSWERED")
    assert (chat.sandbox / "b.txt").read_text() == "+\n"
    assert len(chat.gate.redemptions) == 2


@pytest.mark.parametrize(("point", "counted"), [("agent.8", 0), ("agent.9", 1)])
async def test_an_unsafe_effect_is_never_repeated_and_its_doubt_ends_the_episode(
    tmp_path: Path, stores: Stores, point: str, counted: int
) -> None:
    counter.counted.clear()
    counter.behaviour.update(flaky_failures=0, count_raises=0)
    chat = Chat(tmp_path, Checkpoints(stores.database), REACT)
    model = ScriptedModel()
    chat.model = model
    model.script(proposes(("count", {"label": "one"}), ("count", {"label": "two"})))
    with dies_at(point), pytest.raises(Died):
        await chat.say("cuenta dos")
    state = await chat.go_on()
    assert (state["run_status"], state["finish_reason"]) == ("failed", "EFFECT_IN_DOUBT")
    assert len(counter.counted) == counted
    assert [row.state for row in chat.ledger.rows.values()] == ["in_doubt"]
    assert state["final"]["evidence_keys"] == []
    assert (
        "He intentado count <etiqueta> y no puedo saber si llegó a hacerse, así que no lo repito"
        in state["reply"]["text"]
    )

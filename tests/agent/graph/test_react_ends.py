"""The react graph with a model: every potentially endless loop terminates, also if the model becomes unavailable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.ports import ModelBudgetError

from tests.support.agent import counter_tool as counter
from tests.support.agent.graph import Chat, ended, reasons, said
from tests.support.agent.react import AWAY, opened, tools
from tests.support.agent.scripted_model import ScriptedModel, proposes, says


@pytest.fixture
def chat(tmp_path: Path, model: ScriptedModel) -> Chat:
    return opened(tmp_path, model)


async def test_after_its_last_round_the_router_closes_and_a_model_that_asks_again_gets_nothing(
    tmp_path: Path, model: ScriptedModel
) -> None:
    chat = opened(tmp_path, model, tool_rounds=1)
    model.otherwise = proposes(("count", {"label": "again"}), text="Sigo.")
    state = await chat.say("cuenta sin parar")
    assert ended(state) == ("failed", "TOOL_ROUND_LIMIT")
    assert (counter.counted, len(model.asked)) == (["again"], 2)
    assert model.asked[1][2] == [], "no tool is offered any more"
    assert "Sigo." in said(state)
    assert "más idas y vueltas" in said(state)


async def test_an_endless_loop_of_the_same_call_is_hinted_at_then_stopped(tmp_path: Path, model: ScriptedModel) -> None:
    chat = opened(tmp_path, model, tool_rounds=8)
    model.otherwise = proposes(("count", {"label": "again"}))
    state = await chat.say("cuenta sin parar")
    assert ended(state) == ("failed", "REPEATED_CALL")
    assert counter.counted == ["again"] * 3
    assert reasons(chat) == ["REPEATED_CALL", "REPEATED_CALL"]
    assert "Do something else" in model.shown(2)


async def test_an_endless_loop_of_other_calls_ends_with_the_steps(tmp_path: Path, model: ScriptedModel) -> None:
    chat = opened(tmp_path, model, tool_rounds=8)
    model.answers += [proposes(("count", {"label": str(number)})) for number in range(20)]
    state = await chat.say("cuenta sin parar")
    assert ended(state) == ("failed", "STEP_LIMIT")
    assert state["budgets"]["supersteps"] <= 25
    assert 1 < len(counter.counted) < 8


async def test_a_reply_of_more_calls_than_fit_runs_those_that_do_and_names_the_stop(
    chat: Chat, model: ScriptedModel
) -> None:
    model.script(proposes(*(("count", {"label": str(number)}) for number in range(12))))
    state = await chat.say("cuenta doce")
    assert ended(state) == ("failed", "STEP_LIMIT")
    assert counter.counted == ["0", "1", "2", "3"]
    assert "Queda sin hacer" in said(state)
    assert state["budgets"]["supersteps"] <= 25
    model.kept.clear()  # a run keeps its replies, and another one asks anew
    model.otherwise = proposes(*(("count", {"label": str(number)}) for number in range(13)))
    assert ended(await chat.say("cuenta trece")) == ("failed", "MODEL_CALL_INVALID")


async def test_a_model_that_is_away_leaves_the_message_to_the_rules_and_says_so(
    chat: Chat, model: ScriptedModel
) -> None:
    model.script(AWAY)
    state = await chat.say("explica notas.txt")
    assert ended(state) == ("done", "ANSWERED")
    assert tools(state) == ["echo:done", "read_file:done"]
    assert "no me responde el modelo" in said(state)
    assert "hola mundo" in said(state)
    assert (state["metadata"]["mode"], reasons(chat)) == ("static", ["MODEL_UNREACHABLE"])


@pytest.mark.parametrize("error", [AWAY, ModelBudgetError("TOKEN_LIMIT"), says("")], ids=["away", "budget", "empty"])
async def test_a_model_that_goes_away_after_a_call_never_has_the_rules_do_it_again(
    chat: Chat, model: ScriptedModel, error: Any
) -> None:
    chat.gate.policy["write_file"] = "ALLOW"
    model.script(proposes(("write_file", {"path": "b.txt", "content": "+", "append": True})), error)
    state = await chat.say("añade + a b.txt")
    reason = getattr(error, "reason", "MODEL_EMPTY")
    assert ended(state) == ("failed", reason)
    assert (chat.sandbox / "b.txt").read_text() == "+\n"
    assert (len(chat.ledger.rows), len(chat.gate.redemptions)) == (1, 1)
    assert "Guardado en «b.txt»" in said(state), "what was done is told"
    assert reasons(chat) == [reason]
    assert reason not in said(state)
    assert state["final"]["evidence_keys"] == ["s1.write_file"]


async def test_a_run_that_waited_goes_on_where_there_is_no_model_any_more(chat: Chat, model: ScriptedModel) -> None:
    model.script(proposes(("write_file", {"path": "b.txt", "content": "hola"})))
    await chat.say("escribe hola en b.txt")
    chat.model = None
    state = await chat.say(f"APROBAR ap_waiting0 {chat.gate.codes['ap_waiting0']}")
    assert ended(state) == ("failed", "MODEL_NOT_CONFIGURED")
    assert (chat.sandbox / "b.txt").read_text() == "hola"
    assert len(chat.ledger.rows) == 1

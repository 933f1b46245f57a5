"""A conversation with the react graph over a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from phylactery_agent.graph.react.builder import react_with
from phylactery_agent.graph.react.state import ReactOptions
from phylactery_agent.ports import ModelUnavailableError

from tests.support.agent import counter_tool as counter
from tests.support.agent.graph import Chat
from tests.support.agent.scripted_model import ScriptedModel

AWAY = ModelUnavailableError("MODEL_UNREACHABLE", "nobody answers")


def opened(folder: Path, model: ScriptedModel, **options: Any) -> Chat:
    """Open a conversation; ``options`` are the graph's."""
    counter.counted.clear()
    counter.behaviour.update(flaky_failures=0, count_raises=0)
    made = Chat(folder, spec=react_with(ReactOptions(**options)))
    made.model = model
    (made.sandbox / "notas.txt").write_text("hola mundo")
    return made


def tools(state: dict[str, Any]) -> list[str]:
    """Return the tools of the plan, each with the status of its step."""
    return [f"{planned['tool']}:{state['steps'][planned['id']]['status']}" for planned in state["plan"]]

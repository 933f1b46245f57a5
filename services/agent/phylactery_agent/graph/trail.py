"""What every node's wrapper tells the trail, whichever graph the node belongs to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config
from langgraph.graph import END
from langgraph.types import Command

from phylactery_agent.ports import NodeStep, Trail


class Stopwatch:
    """Measures one node from its making on, and notes it. Where the run may not go on its making raises why."""

    def __init__(self, trail: Trail, node: str) -> None:
        trail.begin()
        self._trail, self._node = trail, node
        self._started_us, self._began_ns = trail.now_us(), time.perf_counter_ns()

    def ended(self, state: Mapping[str, Any], command: Command[Any]) -> None:
        """Notes that the node ended with this command. Arguments and results of a call are never looked at."""
        update = command.update if isinstance(command.update, Mapping) else {}
        goto = command.goto if isinstance(command.goto, (list, tuple)) else [command.goto]
        self._trail.note(
            NodeStep(
                node=self._node,
                graph_step=int(get_config()["metadata"]["langgraph_step"]),
                started_us=self._started_us,
                duration_us=(time.perf_counter_ns() - self._began_ns) // 1_000,
                next_nodes=tuple(str(target) for target in goto if target and target != END),
                tool_call_id=_tool_call_id(state, update),
                finish_reason=str(update.get("finish_reason") or ""),
            )
        )


def _tool_call_id(state: Mapping[str, Any], update: Mapping[str, Any]) -> str:
    """Answers the id of the call a node proposed or worked on; a node that reads a result worked on its call too."""
    call = update.get("proposed_tool") or state.get("proposed_tool") or {}
    return str(call.get("tool_call_id") or "")

"""State of the form graph: a conversation (ADR 47) beside what the shared nodes need, as plain JSON values."""

from __future__ import annotations

from typing import Any

from phylactery_forms.dialogue.state import ConversationState, FormTurn, new_turn

from phylactery_agent.graph.core import state as shared
from phylactery_agent.graph.core.state import AgentState
from phylactery_agent.ports import Turn


class GraphState(AgentState, FormTurn):
    """The complete state of a thread in the form graph."""


def form_input(conversation: ConversationState, turn: Turn) -> dict[str, Any]:
    """Return the seed's fields for one message, reset."""
    return dict(new_turn(conversation, turn.text, turn.turn_id))


def new_run_input(turn: Turn, conversation: ConversationState) -> dict[str, Any]:
    """Return the graph's input for a message of a conversation about a form."""
    return {**shared.new_run_input(turn), **form_input(conversation, turn), "language": conversation["language"]}


def reentry_input(turn: Turn, conversation: ConversationState) -> dict[str, Any]:
    """Return the graph's input for resuming a suspended run: a message to a form whose submission waits for a yes."""
    return {**shared.reentry_input(turn), **form_input(conversation, turn), "language": conversation["language"]}

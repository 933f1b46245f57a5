"""Replies of the runtime for turns that cannot be served; all other texts a person reads come from the graph."""

from __future__ import annotations

from typing import Final

from phylactery_agent.i18n.messages import message
from phylactery_agent.ports import Language

MEMORY_UNAVAILABLE: Final = "MEMORY_UNAVAILABLE"
GATE_UNAVAILABLE: Final = "GATE_UNAVAILABLE"
STEP_LIMIT: Final = "STEP_LIMIT"
TOO_MANY_ATTEMPTS: Final = "TOO_MANY_ATTEMPTS"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"
CANCELLED: Final = "CANCELLED"
INTERRUPTED: Final = "INTERRUPTED"
ACTIVE_TIME_LIMIT: Final = "ACTIVE_TIME_LIMIT"
STATE_LOST: Final = "STATE_LOST"
GRAPH_CHANGED: Final = "GRAPH_CHANGED"
REASONS: Final = (
    MEMORY_UNAVAILABLE,
    GATE_UNAVAILABLE,
    STEP_LIMIT,
    TOO_MANY_ATTEMPTS,
    INTERNAL_ERROR,
    CANCELLED,
    INTERRUPTED,
    ACTIVE_TIME_LIMIT,
    STATE_LOST,
    GRAPH_CHANGED,
)


def apology(reason: str, language: Language) -> str:
    """Return the reply text for one of the reasons above."""
    return message(f"ended_{reason}", language)

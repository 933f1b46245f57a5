"""Which step follows which, and a message's way through all of them; the compiled graph follows the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue import steps
from phylactery_forms.dialogue.state import FormTurn
from phylactery_forms.values.model import Context

END: Final = "__end__"
_Ended = Literal["__end__"]


def route_after_escalation_check(state: FormTurn) -> Literal["escalate", "check_correction"]:
    """Return the step after check_escalation."""
    return "escalate" if state["should_escalate"] else "check_correction"


def route_after_correction_check(state: FormTurn) -> Literal["extract_field", "check_off_topic"]:
    """Return the step after check_correction."""
    return "extract_field" if state["is_correction"] else "check_off_topic"


def route_after_off_topic_check(state: FormTurn) -> Literal["complete", "prompt_next", "extract_field"]:
    """Return the step after check_off_topic; a command is carried out and answered without reading a value."""
    if state["next_action"] == "left":
        return "prompt_next"
    if state["metadata"].get("all_collected"):
        return "complete"
    if state["is_off_topic"] or state["next_action"]:
        return "prompt_next"
    return "extract_field"


def route_after_validate(state: FormTurn) -> Literal["complete", "prompt_next"]:
    """Return the step after validate."""
    return "complete" if state["metadata"].get("all_collected") else "prompt_next"


def _to_validate(state: FormTurn) -> Literal["validate"]:
    del state
    return "validate"


def _ends(state: FormTurn) -> _Ended:
    del state
    return "__end__"


ENTRY: Final = "check_escalation"
STEPS: Final[Mapping[str, tuple[Callable[..., dict[str, Any]], Callable[[FormTurn], str]]]] = {
    "check_escalation": (steps.check_escalation, route_after_escalation_check),
    "check_correction": (steps.check_correction, route_after_correction_check),
    "check_off_topic": (steps.check_off_topic, route_after_off_topic_check),
    "extract_field": (steps.extract_field, _to_validate),
    "validate": (steps.validate, route_after_validate),
    "prompt_next": (steps.prompt_next, _ends),
    "escalate": (steps.escalate, _ends),
    "complete": (steps.complete, _ends),
}
EDGES: Final = (
    ("check_escalation", "escalate"),
    ("check_escalation", "check_correction"),
    ("check_correction", "extract_field"),
    ("check_correction", "check_off_topic"),
    ("check_off_topic", "complete"),
    ("check_off_topic", "prompt_next"),
    ("check_off_topic", "extract_field"),
    ("extract_field", "validate"),
    ("validate", "complete"),
    ("validate", "prompt_next"),
    ("prompt_next", END),
    ("escalate", END),
    ("complete", END),
)
"""Every edge there may be, for the coverage of stories."""


def run_turn(turn: FormTurn, form: Form, context: Context, *, request: bool = False) -> tuple[FormTurn, list[str]]:
    """Return the turn after all its steps by rules alone, and the steps it took in order."""
    place, taken = ENTRY, list[str]()
    while place != END:
        taken.append(place)
        step, route = STEPS[place]
        more = {"request": request} if place == "check_off_topic" else {}
        turn = cast("FormTurn", {**turn, **step(turn, form, context, **more)})
        place = route(turn)
    return turn, taken

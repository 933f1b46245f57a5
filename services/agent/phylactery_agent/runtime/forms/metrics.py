"""Metrics of forms: how sessions begin and end, and what messages in them come to.

Attributes are ids of the operator's forms and words from fixed lists: never a value or a text of a person.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.instruments import each, meter, start_at_zero

Answer = Literal["", "accepted", "corrected", "refused", "off_topic", "command"]
"""What a message in a form came to: "refused" is asked again; empty for a message that answers no field."""
BEGUN: Final = "begun"

_sessions = meter().create_counter(
    semconv.AGENT_FORM_SESSIONS, unit="{session}", description="forms that were begun or ended, by status"
)
_answers = meter().create_counter(
    semconv.AGENT_FORM_ANSWERS, unit="{message}", description="messages said in a form, by what they came to"
)


def begin(forms: Iterable[str], statuses: Iterable[str]) -> None:
    """Export as 0 what is counted of each form; ``statuses`` are those in which a session ends."""
    names = tuple(forms)
    start_at_zero(_sessions, each({semconv.FORM: names, semconv.FORM_STATUS: (BEGUN, *statuses)}))
    start_at_zero(_answers, each({semconv.FORM: names, semconv.FORM_ANSWER: filter(None, get_args(Answer))}))


def answer_of(state: Mapping[str, Any], *, opens: bool) -> Answer:
    """Return what the message of a form graph's final state came to; opens means that it began the form."""
    if state["next_action"]:
        return "command"
    if state["is_off_topic"]:
        return "off_topic"
    if state["current_field"] is None:
        return ""
    if not state["is_valid"]:
        return "" if opens else "refused"
    return "corrected" if state["is_correction"] else "accepted"


def session_changed(form: str, status: str) -> None:
    """Count a session that was started, or that ended with a status."""
    _sessions.add(1, {semconv.FORM: form, semconv.FORM_STATUS: status})


def answered(form: str, answer: Answer) -> None:
    """Count a message said in a form, unless it answers no field."""
    if answer:
        _answers.add(1, {semconv.FORM: form, semconv.FORM_ANSWER: answer})

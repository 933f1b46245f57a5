"""What EvaluateAccess is asked: one question, or several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from phylactery_chassis.rpc.validation import EdgeModel, ToolName, parse
from pydantic import Field, StringConstraints

MAX_QUESTIONS = 100

Semantic = Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"]
_Subject = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]
_Word = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,64}$")]
_Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,256}$")]
_Properties = Annotated[dict[str, Any], Field(default_factory=dict)]


class SubjectInput(EdgeModel):
    """Whom a question is about."""

    type: _Word
    id: _Subject
    properties: _Properties


class ActionInput(EdgeModel):
    """What would be done: a tool of the catalog."""

    name: ToolName
    properties: _Properties


class ResourceInput(EdgeModel):
    """What it would be done to."""

    type: _Text
    id: _Text
    properties: _Properties


class QuestionInput(EdgeModel):
    """One question, complete."""

    subject: SubjectInput
    action: ActionInput
    resource: ResourceInput
    context: _Properties


class AccessInput(EdgeModel):
    """The questions, and when to stop answering them."""

    evaluations: Annotated[list[QuestionInput], Field(min_length=1, max_length=MAX_QUESTIONS)]
    evaluations_semantic: Semantic = "execute_all"


def read_access(fields: Mapping[str, Any]) -> AccessInput:
    """Reads one question as itself, so that a fault names its own field. Raises InvalidArgument INVALID_REQUEST."""
    if "evaluations" in fields:
        return parse(AccessInput, fields)
    return AccessInput(evaluations=[parse(QuestionInput, fields)])

"""Request models of evaluation, redemption, access evaluation, explanation and operator stops."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from phylactery_chassis.auth.jws import MAX_TOKEN_CHARACTERS
from phylactery_chassis.rpc.validation import (
    EdgeModel,
    Identifier,
    LongIdentifier,
    OptionalIdentifier,
    OptionalLongIdentifier,
    OptionalSha256,
    ToolName,
    parse,
)
from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator

from phylactery_riskgate.domain.catalog.submissions import FORM_NAME
from phylactery_riskgate.domain.model import Pathway
from phylactery_riskgate.store.stops import Scope

MAX_BATCH = 100
MAX_SIZE = 2**53 - 1
"""The largest integer that RFC 8785 writes exactly."""

Line = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Token = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TOKEN_CHARACTERS, pattern=r"^[\x21-\x7e]+$")]
_ErrorCode = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9_]{0,64}$")]


class CallInput(EdgeModel):
    """A proposed call. Its arguments are checked by the decision, which records what is wrong with them."""

    tool: ToolName
    tool_call_id: Identifier
    arguments_json: str | None = None
    arguments_struct: dict[str, Any] | None = None
    raw_args_hash: OptionalSha256 = ""
    tool_schema_hash: OptionalSha256 = ""


class FormRunInput(EdgeModel):
    """The form whose run submits the call."""

    form: Annotated[str, StringConstraints(pattern=FORM_NAME)]
    version: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]
    peer: bool = False


class EvaluateInput(EdgeModel):
    """One Evaluate request."""

    call: CallInput
    thread_id: Identifier
    run_id: Identifier
    plan_step: Line = ""
    approval_id: OptionalIdentifier = ""
    pathway: Pathway = "unspecified"
    task_id: OptionalIdentifier = ""
    min_bundle_revision: int = Field(0, ge=0)
    execution_id: OptionalLongIdentifier = ""
    form_run: FormRunInput | None = None

    @field_validator("form_run")
    @classmethod
    def _of_exactly_this_call(cls, value: FormRunInput | None, info: ValidationInfo) -> FormRunInput | None:
        call = info.data.get("call")
        if value is not None and call is not None and not call.raw_args_hash:
            raise ValueError("a form's run says which arguments it submits: send call.raw_args_hash")
        return value


class BatchInput(EdgeModel):
    """The number of questions in a batch; each is checked separately."""

    requests: int = Field(ge=1, le=MAX_BATCH)


class RedeemInput(EdgeModel):
    """A permit and the execution that redeems it."""

    permit: _Token
    call: CallInput
    execution_id: LongIdentifier
    thread_id: Identifier
    run_id: Identifier
    min_bundle_revision: int = Field(0, ge=0)


class ReversalInput(EdgeModel):
    """What became of an effect that was to be taken back."""

    execution_id: LongIdentifier
    result: Literal["UNDONE", "LEFT", "FAILED"]
    error_code: _ErrorCode = ""


class ToldInput(EdgeModel):
    """Effects that a person was told of."""

    execution_ids: Annotated[list[LongIdentifier], Field(min_length=1, max_length=100)]


class ClearInput(EdgeModel):
    """The tool whose undo is trusted again, and why."""

    tool: Annotated[_Name, Field(min_length=1)]
    tenant: _Name = ""
    reason: _Words = ""


class SinkInput(EdgeModel):
    """The sink of notices that is enabled again."""

    sink: Annotated[_Name, Field(min_length=1)]


class TenantInput(EdgeModel):
    """The tenant whose failed undos are listed."""

    tenant: _Name = ""


class OutcomeInput(EdgeModel):
    """How an execution ended, and what it took back."""

    execution_id: LongIdentifier
    outcome: Literal["SUCCEEDED", "FAILED", "IN_DOUBT"]
    result_hash: OptionalSha256 = ""
    result_size: int = Field(0, ge=0, le=MAX_SIZE)
    error_code: _ErrorCode = ""
    reversals: Annotated[list[ReversalInput], Field(max_length=100, default_factory=list)]
    not_done: bool = False

    @field_validator("not_done")
    @classmethod
    def _of_a_failure(cls, not_done: bool, info: ValidationInfo) -> bool:
        if not_done and info.data.get("outcome") != "FAILED":
            raise ValueError("only an attempt that failed may be said to have done nothing")
        return not_done


MAX_QUESTIONS = 100

Semantic = Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"]
_Subject = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{1,128}$")]
_Word = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,64}$")]
_Text = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,256}$")]
_Properties = Annotated[dict[str, Any], Field(default_factory=dict)]


class SubjectInput(EdgeModel):
    """The subject of a question."""

    type: _Word
    id: _Subject
    properties: _Properties


class ActionInput(EdgeModel):
    """The action of a question: a tool of the catalog."""

    name: ToolName
    properties: _Properties


class ResourceInput(EdgeModel):
    """The resource of a question."""

    type: _Text
    id: _Text
    properties: _Properties


class QuestionInput(EdgeModel):
    """One complete question."""

    subject: SubjectInput
    action: ActionInput
    resource: ResourceInput
    context: _Properties


class AccessInput(EdgeModel):
    """The questions, and when to stop answering them."""

    evaluations: Annotated[list[QuestionInput], Field(min_length=1, max_length=MAX_QUESTIONS)]
    evaluations_semantic: Semantic = "execute_all"


def read_access(fields: Mapping[str, Any]) -> AccessInput:
    """Parse a single question directly, so that errors name its own fields. Raise InvalidArgument INVALID_REQUEST."""
    if "evaluations" in fields:
        return parse(AccessInput, fields)
    return AccessInput(evaluations=[parse(QuestionInput, fields)])


_OptionalSubject = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]


_CLASS = re.compile(r"[a-z][a-z0-9_]{0,63}")


def _class_names(value: list[str]) -> list[str]:
    if not all(_CLASS.fullmatch(name) for name in value):
        raise ValueError("an approval class is named with a-z, 0-9 and _, at most 64 characters")
    return value


class ExplainInput(EdgeModel):
    """A hypothetical call or a recorded decision to explain."""

    question: Literal["call", "decision_id"]
    call: CallInput | None = None
    decision_id: Identifier | None = None
    thread_id: OptionalIdentifier = ""
    plan_step: Line = ""
    approved: Annotated[list[str], Field(max_length=10), AfterValidator(_class_names)]
    subject: _OptionalSubject = ""
    pathway: Pathway = "unspecified"
    task_id: OptionalIdentifier = ""


_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
_Words = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
_NAMED = frozenset({Scope.USER, Scope.TOOL, Scope.ACTOR})


class TargetInput(EdgeModel):
    """What to freeze or lift, and why."""

    scope: Scope
    tenant: _Name = ""
    name: Annotated[_Name, Field(validate_default=True)] = ""
    reason: _Words = ""

    @field_validator("tenant")
    @classmethod
    def _of_one(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("scope") is Scope.ALL:
            raise ValueError("all is every tenant: name none")
        return value

    @field_validator("name")
    @classmethod
    def _named(cls, value: str, info: ValidationInfo) -> str:
        scope = info.data.get("scope")
        if scope in _NAMED and not value:
            raise ValueError("name the user, the tool or the actor")
        if scope is not None and scope not in _NAMED and value:
            raise ValueError("only a user, a tool or an actor has a name")
        return value


class RevokeInput(EdgeModel):
    """The decision to void, and why."""

    decision_id: Identifier
    tenant: _Name = ""
    reason: _Words = ""

"""What RiskGateService is asked."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from phylactery_chassis.rpc.validation import (
    EdgeModel,
    Identifier,
    LongIdentifier,
    OptionalIdentifier,
    OptionalSha256,
    ToolName,
)
from pydantic import Field, StringConstraints

from phylactery_riskgate.domain.model import Pathway
from phylactery_riskgate.permits import MAX_TOKEN_CHARACTERS

MAX_BATCH = 100
MAX_SIZE = 2**53 - 1
"""The largest whole number that RFC 8785 writes exactly."""

Line = Annotated[str, StringConstraints(max_length=128, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Token = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TOKEN_CHARACTERS, pattern=r"^[\x21-\x7e]+$")]
_ErrorCode = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9_]{0,64}$")]


class CallInput(EdgeModel):
    """A proposed call. Its arguments are judged by the decision, which records what is wrong with them."""

    tool: ToolName
    tool_call_id: Identifier
    arguments_json: str | None = None
    arguments_struct: dict[str, Any] | None = None
    raw_args_hash: OptionalSha256 = ""
    tool_schema_hash: OptionalSha256 = ""


class EvaluateInput(EdgeModel):
    """One question."""

    call: CallInput
    thread_id: Identifier
    run_id: Identifier
    plan_step: Line = ""
    approval_id: OptionalIdentifier = ""
    pathway: Pathway = "unspecified"
    task_id: OptionalIdentifier = ""
    min_bundle_revision: int = Field(0, ge=0)


class BatchInput(EdgeModel):
    """How many questions come at once; each is checked for itself."""

    requests: int = Field(ge=1, le=MAX_BATCH)


class RedeemInput(EdgeModel):
    """A permit and the execution that wants to use it."""

    permit: _Token
    call: CallInput
    execution_id: LongIdentifier
    thread_id: Identifier
    run_id: Identifier
    min_bundle_revision: int = Field(0, ge=0)


class OutcomeInput(EdgeModel):
    """How an execution ended."""

    execution_id: LongIdentifier
    outcome: Literal["SUCCEEDED", "FAILED", "IN_DOUBT"]
    result_hash: OptionalSha256 = ""
    result_size: int = Field(0, ge=0, le=MAX_SIZE)
    error_code: _ErrorCode = ""

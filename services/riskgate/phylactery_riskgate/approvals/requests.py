"""Request models of ApprovalService."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.rpc.validation import EdgeModel, Identifier, OptionalIdentifier, Sha256
from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from phylactery_riskgate.approvals.model import ApprovalState

MAX_PAGE = 200
DEFAULT_PAGE = 50

_Words = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]


class GetInput(EdgeModel):
    """Which approval, and whether long values are shown whole."""

    approval_id: Identifier
    full: bool = False


class ListInput(EdgeModel):
    """Which approvals to list."""

    state: ApprovalState | None = None
    thread_id: OptionalIdentifier = ""
    page_size: int = Field(0, ge=0, le=MAX_PAGE)
    page_token: str = Field("", max_length=1_000)


class ApproveInput(EdgeModel):
    """An approving vote."""

    approval_id: Identifier
    args_hash: Sha256
    code: str = Field("", max_length=128)
    thread_id: OptionalIdentifier = ""


class RejectInput(EdgeModel):
    """A rejecting vote."""

    approval_id: Identifier
    reason: _Words = ""
    thread_id: OptionalIdentifier = ""


class WatchInput(EdgeModel):
    """Which changes to stream, and from where."""

    state: ApprovalState | None = None
    thread_id: OptionalIdentifier = ""
    approval_id: OptionalIdentifier = ""
    resume_token: str = Field("", max_length=200)
    snapshot: bool = False

    @field_validator("snapshot")
    @classmethod
    def _fresh(cls, value: bool, info: ValidationInfo) -> bool:
        if value and info.data.get("resume_token"):
            raise ValueError("cannot be combined with resume_token")
        return value

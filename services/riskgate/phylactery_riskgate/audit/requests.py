"""Request models of AuditService."""

from __future__ import annotations

from typing import Annotated, Literal

from phylactery_chassis.rpc.validation import EdgeModel, Identifier, OptionalIdentifier
from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from phylactery_riskgate.domain.model import Decision

MAX_PAGE = 200
DEFAULT_PAGE = 50
MAX_REFERENCES = 500
MAX_POSITIONS = 1_000
_MAX_INDEX = 2**53 - 1
_MAX_US = 2**53 - 1

_LogName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]{1,128}$")]
_OptionalLog = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:/-]{0,128}$")]
_Subject = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
_Kind = Annotated[str, StringConstraints(pattern=r"^[a-z_]{0,32}$")]
_Tool = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{0,128}$")]
_Words = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]
_Size = Annotated[int, Field(ge=0, le=_MAX_INDEX)]


class FilterInput(EdgeModel):
    """Criteria for entries; an empty field or 0 matches all."""

    log: _OptionalLog = ""
    kind: _Kind = ""
    subject: _Subject = ""
    run_id: OptionalIdentifier = ""
    thread_id: OptionalIdentifier = ""
    tool: _Tool = ""
    decision: Decision | None = None
    start_us: int = Field(0, ge=0, le=_MAX_US)
    end_us: int = Field(0, ge=0, le=_MAX_US)


class ListEntriesInput(EdgeModel):
    """A page of entries."""

    filter: FilterInput
    oldest_first: bool = False
    include_values: bool = False
    page_size: int = Field(0, ge=0, le=MAX_PAGE)
    page_token: str = Field("", max_length=1_000)


class PositionInput(EdgeModel):
    """The read position in a log."""

    log: _LogName
    next_index: _Size = 0


class TailInput(EdgeModel):
    """What to follow, and from where."""

    filter: FilterInput
    include_values: bool = False
    positions: list[PositionInput] = Field([], max_length=MAX_POSITIONS)
    from_beginning: bool = False

    @field_validator("filter")
    @classmethod
    def _without_times(cls, wanted: FilterInput) -> FilterInput:
        if wanted.start_us or wanted.end_us:
            raise ValueError("a tail takes no start_time and no end_time; list those entries")
        return wanted

    @field_validator("from_beginning")
    @classmethod
    def _one_beginning(cls, wanted: bool, info: ValidationInfo) -> bool:
        if wanted and info.data.get("positions"):
            raise ValueError("positions say already where to begin")
        return wanted


class CheckpointInput(EdgeModel):
    """The request for a signed head."""

    log: _OptionalLog = ""
    size: _Size = 0


class ExportInput(EdgeModel):
    """A log to export."""

    log: _OptionalLog = ""
    include_values: bool = False


class InclusionInput(EdgeModel):
    """An entry, and the tree to prove it in."""

    log: _OptionalLog = ""
    index: _Size = 0
    tree_size: _Size = 0


class ConsistencyInput(EdgeModel):
    """Two sizes of a log."""

    log: _OptionalLog = ""
    first_size: int = Field(ge=1, le=_MAX_INDEX)
    second_size: _Size = 0


class ReferenceInput(EdgeModel):
    """The place of an entry."""

    log: _LogName
    index: _Size = 0


class ReceiptInput(EdgeModel):
    """What a receipt is of."""

    of: Literal["decision_id", "approval_id", "entry"]
    decision_id: Identifier | None = None
    approval_id: Identifier | None = None
    entry: ReferenceInput | None = None
    include_values: bool = False


class EraseInput(EdgeModel):
    """The entries whose values to erase, and why."""

    entries: list[ReferenceInput] = Field([], max_length=MAX_REFERENCES)
    filter: FilterInput | None = Field(None, validate_default=True)
    reason: _Words

    @field_validator("filter")
    @classmethod
    def _narrow(cls, wanted: FilterInput | None, info: ValidationInfo) -> FilterInput | None:
        if wanted is None and info.data.get("entries") == []:
            raise ValueError("name entries, or give a filter")
        if wanted and not (wanted.subject or wanted.run_id or wanted.thread_id or wanted.end_us):
            raise ValueError("needs subject, run_id, thread_id or end_time, so that not all is erased by accident")
        return wanted

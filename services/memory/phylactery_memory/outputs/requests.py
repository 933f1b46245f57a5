"""Validated requests of OutputService."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.rpc.validation import EdgeModel, Identifier, OptionalIdentifier, ToolName
from phylactery_chassis.util.clock import MICROSECONDS
from pydantic import Field, model_validator

from phylactery_memory.outputs.model import MAX_READ_CHARS

MAX_CHUNK_BYTES = 1024 * 1024
_MAX_TTL_SECONDS = 3_650 * 86_400
_MAX_NUMBER = 2**62
"""The sum of two of these still fits a database column."""

Offset = Annotated[int, Field(ge=0, le=_MAX_NUMBER)]


class TtlRequest(EdgeModel):
    """The retention of an output: 1 minute to 3,650 days."""

    seconds: Annotated[int, Field(ge=60, le=_MAX_TTL_SECONDS)]
    nanos: Annotated[int, Field(ge=0, lt=1_000_000_000)]

    @property
    def microseconds(self) -> int:
        """Return the duration in microseconds."""
        return self.seconds * MICROSECONDS + self.nanos // 1_000


class SpecRequest(EdgeModel):
    """The origin of an output, and its storage options."""

    thread_id: Identifier
    run_id: Identifier
    tool_call_id: Identifier
    tool_name: ToolName
    ttl: TtlRequest | None
    do_not_store: bool
    keep: bool

    @model_validator(mode="after")
    def _one_wish(self) -> SpecRequest:
        if self.keep and self.do_not_store:
            raise ValueError("set keep or do_not_store, not both")
        return self


class ChunkRequest(EdgeModel):
    """The next bytes of an output."""

    chunk: Annotated[bytes, Field(max_length=MAX_CHUNK_BYTES)]


class PointerRequest(EdgeModel):
    """The pointer of an output."""

    pointer: Identifier


class LinesRequest(EdgeModel):
    """A range of lines; count 0 means as many as fit."""

    first: Annotated[int, Field(ge=1, le=_MAX_NUMBER)]
    count: Annotated[int, Field(ge=0, le=MAX_READ_CHARS)]
    skip_chars: Offset


class ReadRequest(EdgeModel):
    """A range of an output; limit 0 means the maximum."""

    pointer: Identifier
    offset: Annotated[int, Field(ge=0)]
    limit: Annotated[int, Field(ge=0, le=MAX_READ_CHARS)]
    lines: LinesRequest | None

    @model_validator(mode="after")
    def _one_kind_of_range(self) -> ReadRequest:
        if self.lines is not None and self.offset:
            raise ValueError("lines and offset are two kinds of range: set one of them")
        return self


class SearchRequest(EdgeModel):
    """A search for lines that match a pattern; max_matches 0 means 50."""

    pointer: Identifier
    pattern: Annotated[str, Field(min_length=1, max_length=1_000)]
    literal: bool
    ignore_case: bool
    context_lines: Annotated[int, Field(ge=0, le=10)]
    offset: Annotated[int, Field(ge=0)]
    max_matches: Annotated[int, Field(ge=0, le=100)]


class ListRequest(EdgeModel):
    """A page of outputs; page_size 0 means 50."""

    thread_id: OptionalIdentifier
    run_id: OptionalIdentifier
    page_size: Annotated[int, Field(ge=0, le=200)]
    page_token: Annotated[str, Field(max_length=1_000)]

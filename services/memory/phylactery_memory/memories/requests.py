"""Validated requests of the memory RPCs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from phylactery_chassis.rpc.validation import EdgeModel, Identifier, OptionalIdentifier, OptionalSha256
from pydantic import Field, ValidationInfo, field_validator, model_validator

from phylactery_memory.memories.model import MAX_TEXT_CHARS
from phylactery_memory.transcript.requests import MAX_SEQUENCE, TimeItem

MemoryText = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS)]
Importance = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
KindNumber = Annotated[int, Field(ge=0, le=3)]
LayerNumber = Annotated[int, Field(ge=0, le=2)]
PageToken = Annotated[str, Field(max_length=1_000)]
Etag = Annotated[str, Field(max_length=128)]


class OriginItem(EdgeModel):
    """One origin of a memory: a message, or an output's pointer."""

    thread_id: OptionalIdentifier
    message_id: OptionalIdentifier
    pointer: OptionalIdentifier

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if not self.pointer and not (self.thread_id and self.message_id):
            raise ValueError("names neither a message (thread_id and message_id) nor a pointer")
        return self


class WriteMemoryItem(EdgeModel):
    """A text to remember."""

    text: MemoryText
    source: Annotated[int, Field(ge=1, le=6)]
    unconfirmed_source: Literal[0, 2, 6] = 0
    lineage: Annotated[list[OriginItem], Field(max_length=20)]
    kind: KindNumber
    keep: bool
    importance: Importance
    thread_id: OptionalIdentifier
    sequence: Annotated[int, Field(ge=0, le=MAX_SEQUENCE)]
    about: OptionalIdentifier
    attribute: OptionalIdentifier
    valid_at: TimeItem | None
    supersedes: OptionalIdentifier
    if_content_hash: OptionalSha256

    @field_validator("if_content_hash")
    @classmethod
    def _asks_about_an_attribute(cls, value: str, info: ValidationInfo) -> str:
        if value and not info.data.get("attribute", "unknown"):
            raise ValueError("asks about the fact attribute names, and attribute is empty")
        return value


class SearchMemoriesItem(EdgeModel):
    """A query; 0 and empty fields do not filter."""

    query: Annotated[str, Field(min_length=1, max_length=2_000)]
    limit: Annotated[int, Field(ge=0, le=100)]
    as_of: TimeItem | None
    include_invalid: bool
    thread_id: OptionalIdentifier
    kind: KindNumber
    layer: LayerNumber
    min_trust: Annotated[int, Field(ge=0, le=4)]
    only_matching: bool


class ListMemoriesItem(EdgeModel):
    """A page of memories; 0 and empty fields do not filter."""

    page_size: Annotated[int, Field(ge=0, le=200)]
    page_token: PageToken
    as_of: TimeItem | None
    include_invalid: bool
    thread_id: OptionalIdentifier
    kind: KindNumber
    layer: LayerNumber
    about: OptionalIdentifier
    attribute: OptionalIdentifier


class MaskItem(EdgeModel):
    """The field mask of an update."""

    paths: Annotated[list[Literal["text", "kind", "importance", "invalid_at"]], Field(min_length=1, max_length=4)]


class UpdateMemoryItem(EdgeModel):
    """Changes to a memory; update_mask names the fields that apply."""

    memory_id: Identifier
    etag: Annotated[str, Field(min_length=1, max_length=128)]
    update_mask: MaskItem
    text: Annotated[str, Field(max_length=MAX_TEXT_CHARS)]
    kind: KindNumber
    importance: Importance
    invalid_at: TimeItem | None

    @field_validator("text", "kind")
    @classmethod
    def _is_set_where_it_counts(cls, value: str | int, info: ValidationInfo) -> str | int:
        mask = info.data.get("update_mask")
        if mask is not None and info.field_name in mask.paths and not value:
            raise ValueError("is empty, and update_mask names it")
        return value


class ForgetMemoryItem(EdgeModel):
    """A memory to remove."""

    memory_id: Identifier
    etag: Etag
    restore_superseded: bool

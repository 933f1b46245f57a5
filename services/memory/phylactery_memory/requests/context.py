"""What is asked of a context."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.rpc.validation import EdgeModel, Identifier
from pydantic import Field

from phylactery_memory.domain.context import MAX_QUERY_CHARS


class BuildContextItem(EdgeModel):
    """What a turn should know; 0 and empty leave it to the pathway."""

    thread_id: Identifier
    pathway: Annotated[int, Field(ge=1, le=4)]
    query: Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
    max_messages: Annotated[int, Field(ge=0, le=500)]
    max_characters: Annotated[int, Field(ge=0, le=1_000_000)]
    max_memories: Annotated[int, Field(ge=0, le=100)]

"""What OutputService is asked."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.edge import EdgeModel, Identifier, ToolName
from pydantic import Field

from phylactery_memory.domain.outputs import MAX_READ_CHARS

MAX_CHUNK_BYTES = 1024 * 1024


class SpecRequest(EdgeModel):
    """Where an output comes from."""

    thread_id: Identifier
    run_id: Identifier
    tool_call_id: Identifier
    tool_name: ToolName


class ChunkRequest(EdgeModel):
    """The next bytes of an output."""

    chunk: Annotated[bytes, Field(max_length=MAX_CHUNK_BYTES)]


class PointerRequest(EdgeModel):
    """Names an output."""

    pointer: Identifier


class ReadRequest(EdgeModel):
    """Names a range of an output; limit 0 means the most."""

    pointer: Identifier
    offset: Annotated[int, Field(ge=0)]
    limit: Annotated[int, Field(ge=0, le=MAX_READ_CHARS)]

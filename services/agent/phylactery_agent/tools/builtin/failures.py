"""How a tool that asks memory fails."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from phylactery_agent.ports import MemoryRefusedError, MemoryUnavailableError
from phylactery_agent.tools.contract import ToolFailedError

T = TypeVar("T")


async def asked_of_memory(call: Awaitable[T]) -> T:
    """Awaits a call to memory.

    Raises:
        ToolFailedError: memory refuses it (its own reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    try:
        return await call
    except MemoryRefusedError as error:
        raise ToolFailedError(error.reason, error.message) from error
    except MemoryUnavailableError as error:
        raise ToolFailedError("MEMORY_UNAVAILABLE", "the memory service does not answer") from error

"""The text tools echo, read_output, rehydrate_output and search_output, which use no files."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from phylactery_agent.ports import MemoryRefusedError, MemoryUnavailableError
from phylactery_agent.tools.contract import Invocation, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import (
    EchoArguments,
    ReadOutputArguments,
    RehydrateOutputArguments,
    SearchOutputArguments,
)

T = TypeVar("T")


async def asked_of_memory(call: Awaitable[T]) -> T:
    """Await a call to memory.

    Raises:
        ToolFailedError: Memory refuses it (its own reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    try:
        return await call
    except MemoryRefusedError as error:
        raise ToolFailedError(error.reason, error.message) from error
    except MemoryUnavailableError as error:
        away = "the memory service does not answer"
        raise ToolFailedError("MEMORY_UNAVAILABLE", away, not_done=not error.sent) from error


async def echo(invocation: Invocation) -> str:
    """Return the given text."""
    args = arguments_of(invocation, EchoArguments)
    return args.text


async def read_output(invocation: Invocation) -> str:
    """Return a range of one of the user's stored outputs, below a line stating the range and the total.

    Raises:
        ToolFailedError: Memory refuses it (its own reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    args = arguments_of(invocation, ReadOutputArguments)
    reading = invocation.outputs.read_output(args.pointer, offset=args.offset, limit=args.limit)
    found = await asked_of_memory(reading)
    end = found.offset + len(found.text)
    return f"[{found.offset}-{end} / {found.total_chars}]\n{found.text}"


async def rehydrate_output(invocation: Invocation) -> str:
    """Return the whole text of one of the user's stored outputs; it is never evicted again.

    Raises:
        ToolFailedError: Memory refuses it (OUTPUT_NOT_REHYDRATABLE if it is too long, or another reason) or does not
        answer
            (MEMORY_UNAVAILABLE).
    """
    args = arguments_of(invocation, RehydrateOutputArguments)
    return await asked_of_memory(invocation.outputs.rehydrate_output(args.pointer))


async def search_output(invocation: Invocation) -> str:
    """Return the matching lines of one of the user's stored outputs with their numbers, in grep's format.

    The line above them states how many there are and which range of the total was searched; if the range ends before
    the output does, the next search starts there. Context lines around a match are marked with a dash.

    Raises:
        ToolFailedError: Memory refuses it (its own reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    args = arguments_of(invocation, SearchOutputArguments)
    searching = invocation.outputs.search_output(
        args.pointer,
        args.pattern,
        literal=args.literal,
        ignore_case=args.ignore_case,
        context_lines=args.context_lines,
        offset=args.offset,
    )
    found = await asked_of_memory(searching)
    matched = sum(line.matched for line in found.lines)
    head = f"[{matched}; {found.offset}-{found.next_offset} / {found.total_chars}]"
    return "\n".join([head, *(f"{line.number}{':' if line.matched else '-'}{line.text}" for line in found.lines)])

"""echo and read_output: the tools that touch no file."""

from __future__ import annotations

from phylactery_agent.tools.builtin.failures import asked_of_memory
from phylactery_agent.tools.contract import Invocation, arguments_of
from phylactery_agent.tools.specs import EchoArguments, ReadOutputArguments


async def echo(invocation: Invocation) -> str:
    """Answers the text it was given."""
    args = arguments_of(invocation, EchoArguments)
    return args.text


async def read_output(invocation: Invocation) -> str:
    """Answers a range of one of the user's stored outputs, under a line that says which range of how much.

    Raises:
        ToolFailedError: memory refuses it (its own reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    args = arguments_of(invocation, ReadOutputArguments)
    reading = invocation.outputs.read_output(args.pointer, offset=args.offset, limit=args.limit)
    found = await asked_of_memory(reading)
    end = found.offset + len(found.text)
    return f"[{found.offset}-{end} / {found.total_chars}]\n{found.text}"

"""The memory tools remember and recall, over what is stored about the user."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from phylactery_agent.ports import DoneEffect, Recalled
from phylactery_agent.tools.builtin.texts import asked_of_memory
from phylactery_agent.tools.contract import Invocation, Restored, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import RecallArguments, RememberArguments


async def remember(invocation: Invocation) -> str:
    """Store a text, and return the memory's id.

    Raises:
        ToolFailedError: The text contains a secret (SECRET_PASSWORD, SECRET_CARD, SECRET_KEY), memory refuses it (its
        own
            reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    args = arguments_of(invocation, RememberArguments)
    kept = await asked_of_memory(invocation.memories.remember(args.text))
    if kept.refusal:
        raise ToolFailedError(kept.refusal, "memory does not keep this text")
    if kept.is_new and invocation.undoing is not None:  # what was known before is not forgotten by an undo
        await invocation.undoing.name_object(invocation.effect_key, kept.memory_id)
    return kept.memory_id


async def unremember(invocation: Invocation, remembered: DoneEffect) -> Restored:
    """Forget what an effect made memory keep; what it had superseded is valid again.

    Raises:
        ToolFailedError: KNOWN_BEFORE if memory had kept the text before, MEMORY_SUPERSEDED if another has taken its
            place, or memory's own reasons.
    """
    if not remembered.object_id:
        raise ToolFailedError("KNOWN_BEFORE", "memory had kept the text before")
    await asked_of_memory(invocation.memories.forget(remembered.object_id))  # one that is gone already is as before
    return Restored(removed=True)


async def is_forgotten(invocation: Invocation, remembered: DoneEffect, _restored: Restored) -> bool:
    """Return True if memory keeps it no more."""
    return not await asked_of_memory(invocation.memories.forget(remembered.object_id))


async def recall(invocation: Invocation) -> str:
    """Return the number of memories found, and then one line for each: its day and its text.

    Text from a tool or the web is marked and encoded as one JSON string, so that none of its lines can pass for another
    memory.

    Raises:
        ToolFailedError: Memory refuses the request (its own reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    args = arguments_of(invocation, RecallArguments)
    found = await asked_of_memory(invocation.memories.recall(args.query, limit=args.limit))
    return "\n".join([f"[{len(found)}]", *map(_line, found)])


def _line(memory: Recalled) -> str:
    day = datetime.fromtimestamp(memory.valid_us / 1_000_000, UTC).date().isoformat()
    text = " ".join(memory.text.split())
    return f"- {day} [untrusted]: {json.dumps(text, ensure_ascii=False)}" if memory.untrusted else f"- {day}: {text}"

"""The memory tools remember, recall and forget, over what is stored about the user."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from phylactery_agent.ports import DoneEffect, Recalled
from phylactery_agent.tools.builtin.texts import asked_of_memory
from phylactery_agent.tools.contract import Invocation, Restored, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import ForgetArguments, RecallArguments, RememberArguments
from phylactery_agent.tools.specs.shown import NO_MATCH

_LOOKED_AT: Final = 50
_LONGEST_QUERY: Final = 2_000


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
    for memory_id in remembered.object_id.split():  # one that is gone already is as before
        await asked_of_memory(invocation.memories.forget(memory_id, restore=True))
    return Restored(removed=True)


async def is_forgotten(invocation: Invocation, remembered: DoneEffect, _restored: Restored) -> bool:
    """Return True if memory keeps it no more."""
    names = remembered.object_id.split()
    return not any([await asked_of_memory(invocation.memories.forget(name, restore=True)) for name in names])


async def forget(invocation: Invocation) -> str:
    """Forget the memory of exactly this text, with what the profile took from it; return the text.

    Raises:
        ToolFailedError: MEMORY_NOT_FOUND if there is none, memory's own reasons, or MEMORY_UNAVAILABLE.
    """
    args = arguments_of(invocation, ForgetArguments)
    wanted = " ".join(args.memory.split()).casefold()
    found = await asked_of_memory(invocation.memories.recall(args.memory[:_LONGEST_QUERY], limit=_LOOKED_AT))
    found = found or await asked_of_memory(invocation.memories.recall("", limit=_LOOKED_AT))
    same = [one for one in found if " ".join(one.text.split()).casefold() == wanted]
    if not same:
        raise ToolFailedError("MEMORY_NOT_FOUND", "memory keeps no such text")
    for one in same:
        await asked_of_memory(invocation.memories.forget(one.memory_id))
    return args.memory


async def recall(invocation: Invocation) -> str:
    """Return the number of memories found, and then one line for each: its day and its text.

    Text from a tool or the web is marked and encoded as one JSON string, so that none of its lines can pass for another
    memory.

    Raises:
        ToolFailedError: Memory refuses the request (its own reason) or does not answer (MEMORY_UNAVAILABLE).
    """
    args = arguments_of(invocation, RecallArguments)
    found = await asked_of_memory(invocation.memories.recall(args.query, limit=args.limit))
    count = f"[{len(found)}]" if found or not args.query.strip() else NO_MATCH
    return "\n".join([count, *map(_line, found)])


def _line(memory: Recalled) -> str:
    day = datetime.fromtimestamp(memory.valid_us / 1_000_000, UTC).date().isoformat()
    text = " ".join(memory.text.split())
    return f"- {day} [untrusted]: {json.dumps(text, ensure_ascii=False)}" if memory.untrusted else f"- {day}: {text}"

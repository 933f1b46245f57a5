"""Storage of a message's attachments in memory, before the message is accepted.

The key of each depends on the person, the request_id and the content alone. A process that dies in between leaves
outputs that the same request finds again, and that expire and are erased like every other output of the person.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Final

from phylactery_chassis.errors import InvalidArgument, ResourceExhausted, Unavailable, Violation
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.media.attachments import (
    MAX_BYTES,
    MAX_TOTAL_BYTES,
    TOOL_NAME,
    Attachment,
    AttachmentError,
    check,
    pack,
)
from phylactery_agent.ports import MemoryRefusedError, MemoryUnavailableError, Outputs
from phylactery_agent.runtime.storage.records import Owner

PRIVATE_SECONDS: Final = 3_600
"""How long the attachments of a message that must not be stored are kept, so that it can be answered."""


def request_key(owner: Owner, request_id: str) -> str:
    """Return a name for what belongs to a request, the same every time it is received."""
    name = json.dumps([owner.tenant, owner.user_id, request_id])
    return hashlib.sha256(name.encode()).hexdigest()[:32]


async def checked(attachments: Sequence[Attachment]) -> None:
    """Raise InvalidArgument INVALID_REQUEST for attachments that are too large, or not what they declare."""
    if sum(len(one.data) for one in attachments) > MAX_TOTAL_BYTES:
        raise _invalid("attachments", f"together they are over {MAX_TOTAL_BYTES} bytes")
    for place, one in enumerate(attachments):
        if len(one.data) > MAX_BYTES:
            raise _invalid(f"attachments.{place}", f"it is over {MAX_BYTES} bytes")
        try:
            await asyncio.to_thread(check, one)
        except AttachmentError as error:
            raise _invalid(f"attachments.{place}", str(error)) from None


async def kept(
    outputs: Outputs, attachments: Sequence[Attachment], *, thread_id: str, request: str, private: bool
) -> tuple[str, ...]:
    """Store attachments and return the kind and pointer of each; a sticker is not stored.

    Raise Unavailable MEMORY_UNAVAILABLE, and ResourceExhausted OUTPUT_QUOTA if the person has no room for them: nothing
    of the message is accepted then.
    """
    found: list[str] = []
    for place, one in enumerate(attachments):
        if one.kind == "sticker":
            found.append("sticker:")
            continue
        try:
            pointer = await outputs.keep_output(
                await asyncio.to_thread(pack, one),
                thread_id=thread_id,
                run_id=f"in_{request}",
                tool_call_id=f"{place}.{one.sha256}",
                tool_name=TOOL_NAME,
                seconds=PRIVATE_SECONDS if private else 0,
            )
        except MemoryUnavailableError:
            raise _away() from None
        except MemoryRefusedError as error:
            if error.reason != "OUTPUT_QUOTA":
                raise _away() from None
            raise ResourceExhausted(
                "OUTPUT_QUOTA",
                "there is no room for the attachments: nothing of the message is kept; delete outputs, or send the "
                "text alone",
            ) from None
        found.append(f"{one.kind}:{pointer}")
    reach("agent.attached")
    return tuple(found)


def _invalid(field: str, what: str) -> InvalidArgument:
    return InvalidArgument(
        "INVALID_REQUEST", f"an attachment is not accepted: {what}", violations=[Violation(field, what)]
    )


def _away() -> Unavailable:
    return Unavailable(
        "MEMORY_UNAVAILABLE",
        "the memory service does not keep the attachments, so nothing is kept; send it again in a moment",
        metadata={"service": "memory"},
    )

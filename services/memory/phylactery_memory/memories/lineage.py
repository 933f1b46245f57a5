"""Lookup of a memory's lineage: the caller's own messages and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import FailedPrecondition
from sqlalchemy.engine import Connection

from phylactery_memory.memories.model import Origin, Trust
from phylactery_memory.memories.write_policy import Evidence
from phylactery_memory.tables import messages, outputs

_TRUST_OF_ROLE = {"user": Trust.USER, "assistant": Trust.ASSISTANT, "tool": Trust.UNTRUSTED}


@dataclass(frozen=True, slots=True)
class Found:
    """The evidence of a lineage, and the place of its first message; thread_id is empty without a message."""

    evidence: Sequence[Evidence]
    thread_id: str = ""
    sequence: int = 0


def find(connection: Connection, owner: Principal, lineage: Sequence[Origin]) -> Found:
    """Return the evidence of a lineage. Raise FailedPrecondition LINEAGE_NOT_FOUND if an origin does not exist."""
    evidence: list[Evidence] = []
    thread_id, sequence = "", 0
    for index, origin in enumerate(lineage):
        if origin.pointer:
            if not _has_output(connection, owner, origin.pointer):
                raise _missing(index, f"output '{origin.pointer}'")
            evidence.append(Evidence(Trust.UNTRUSTED))
            continue
        row = connection.execute(
            sa.select(messages.c.role, messages.c.content, messages.c.sequence).where(
                messages.c.tenant == owner.tenant,
                messages.c.subject == owner.subject,
                messages.c.thread_id == origin.thread_id,
                messages.c.message_id == origin.message_id,
            )
        ).first()
        if row is None:
            raise _missing(index, f"message '{origin.message_id}' of thread '{origin.thread_id}'")
        evidence.append(Evidence(_TRUST_OF_ROLE[row.role], bytes(row.content).decode()))
        if not thread_id:
            thread_id, sequence = origin.thread_id, row.sequence
    return Found(evidence, thread_id, sequence)


def _has_output(connection: Connection, owner: Principal, pointer: str) -> bool:
    found = connection.execute(
        sa.select(outputs.c.pointer).where(
            outputs.c.pointer == pointer, outputs.c.tenant == owner.tenant, outputs.c.subject == owner.subject
        )
    )
    return found.first() is not None


def _missing(index: int, what: str) -> FailedPrecondition:
    return FailedPrecondition(
        "LINEAGE_NOT_FOUND",
        f"lineage names {what}, which this caller does not have; store it first, or leave it out",
        metadata={"index": str(index)},
    )

"""The strict grammar of approval replies: APROBAR | APPROVE id code, RECHAZAR | REJECT id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from phylactery_agent.static.expressions import expression

_APPROVE = expression(r"^(?:APROBAR|APPROVE)\s+([A-Za-z0-9_-]{6,})\s+([A-Za-z0-9_-]{6,})$")
_REJECT = expression(r"^(?:RECHAZAR|REJECT)\s+([A-Za-z0-9_-]{6,})$")


@dataclass(frozen=True, slots=True)
class ApprovalReply:
    """A strict reply. The code is not part of it: what is stored is masked, the real one comes with the turn."""

    verb: Literal["approve", "reject"]
    approval_id: str


def parse_reply(text: str) -> ApprovalReply | None:
    """Answers the strict reply a text is, None for any other text."""
    stripped = text.strip()
    if found := _APPROVE.match(stripped):
        return ApprovalReply("approve", found.group(1))
    if found := _REJECT.match(stripped):
        return ApprovalReply("reject", found.group(1))
    return None

"""Codes in approval replies: taken out of the text before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from phylactery_agent.static.expressions import expression

MASK = "________"
"""Eight underscores: the masked reply still has the form of a reply, so Router reads it as one."""

_STRICT = expression(r"^(APROBAR|APPROVE)\s+([A-Za-z0-9_-]{6,})\s+([A-Za-z0-9_-]{6,})$")
"""Seed 000's grammar."""

_CLOSE = expression(
    r"(?i)\b(aprobar|apruebo|approve|approved)([\s\pZ:,;]+ap_[A-Za-z0-9_-]+)[\s\pZ:,;]+([A-Za-z0-9_-]{6,})"
)
"""A reply that misses the grammar is none, but what stands where the code would be is still not kept."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its code, and the code; code is empty where the text is no strict reply."""

    text: str
    code: str = field(default="", repr=False)


def mask(text: str) -> Masked:
    """Answers the text as it may be stored, and the code of a strict approval reply."""
    found = _STRICT.match(text.strip())
    if found is not None:
        verb, approval_id, code = (found.group(number) for number in (1, 2, 3))
        return Masked(f"{verb} {approval_id} {MASK}", code)
    return Masked(_CLOSE.sub(rf"\1\2 {MASK}", text))

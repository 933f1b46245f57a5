"""Requests with attachments in static mode: each attachment is read first, then the words of the caption are done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.intents import talk_kind
from phylactery_agent.rules.planner import read_request
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import READ_ATTACHMENT

_ABOUT_CONTENT: Final = expression(
    r"(?i)\b(?:says?|reads?|shows?|contents?|summar\pL*|transcri\pL*|what|dice|lee\pL*|muestra\pL*|pone|contenido|contiene"
    r"|resum\pL*|qu[eé])\b"
)


def attached_request(caption: str, pointers: Sequence[str], tools: ToolRegistry) -> str:
    """Return the request that reads the attachments and then does what the caption asks for.

    Only a caption that the rules understand adds to it. Empty without attachments.
    """
    reads = "; ".join(f"read the attachment {pointer}" for pointer in pointers)
    if not reads or not read_request(caption, tools).clauses:
        return reads
    both = f"{reads}; {caption}"
    asked = [found[0].tool for found in read_request(both, tools).clauses]
    whole = asked[: len(pointers)] == [READ_ATTACHMENT.name] * len(pointers) and len(asked) > len(pointers)
    return both if whole else reads


def is_left_over(caption: str, request: str) -> bool:
    """Return True if a caption asks for something that the request made of it does not do."""
    if caption in request or not any(one.isalpha() for one in caption):
        return False
    return talk_kind(caption) is None and next(_ABOUT_CONTENT.finditer(caption), None) is None

"""Codes in approval replies: taken out of the text before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from phylactery_agent.static.expressions import expression

MASK = "________"
"""Eight underscores: the masked reply still has the form of a reply, so Router reads it as one."""

_STRICT = expression(r"^(APROBAR|APPROVE)\s+([A-Za-z0-9_-]{6,})\s+([A-Za-z0-9_-]{6,})$")
"""Seed 000's grammar."""

_GROUPS = r"((?:[A-Za-z2-7]{2,8}[ \pZ-]{1,3}){1,4}[A-Za-z2-7]{2,8})"
_IN_PARTS = expression(rf"^(APROBAR|APPROVE)\s+([A-Za-z0-9_-]{{6,}})\s+{_GROUPS}$")
"""The same with the code in groups, as people read one out."""
_TYPED = expression(rf"(?i)^(aprobar|approve)\s+(ap_[a-z2-7]{{26}})\s+({_GROUPS}|[a-z2-7]{{10}})$")
"""The same in small letters: with a whole id and a whole code it can be nothing else."""
_BETWEEN = expression(r"[^A-Za-z2-7]+")
_CODE_CHARACTERS = 10

_CLOSE = expression(
    r"(?i)\b(aprobar|apruebo|approve|approved)([\s\pZ:,;]+ap_[A-Za-z0-9_-]+)[\s\pZ:,;]+([A-Za-z0-9_-]{6,})"
)
"""A reply that misses the grammar is none, but what stands where the code would be is still not kept."""

_HINT = expression(r"(?i)(?:ap_[a-z2-7]{26}|\b(?:aprob|aprueb|approv))")
"""What makes a text a reply somebody tried to give: an approval's id, or a word for yes."""

_SHAPE = expression(r"(?i)\b[a-z2-7]{10}\b")
"""A code as RiskGate writes it, in either case."""

_ALONE = expression(r"^[^\pL\pN]*[A-Za-z2-7]{10}[^\pL\pN]*$")
"""Such a word and nothing else."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its code, and the code; code is empty where the text is no strict reply."""

    text: str
    code: str = field(default="", repr=False)


def mask(text: str) -> Masked:
    """Answers the text as it may be stored, and the code of a strict approval reply."""
    found = _STRICT.match(text.strip())
    if found is not None and not found.group(3).lower().startswith("ap_"):
        verb, approval_id, code = (found.group(number) for number in (1, 2, 3))
        return Masked(f"{verb} {approval_id} {MASK}", code)
    found = _IN_PARTS.match(text.strip()) or _TYPED.match(text.strip())
    code = "" if found is None else _BETWEEN.sub("", str(found.group(3)))
    if found is not None and len(code) == _CODE_CHARACTERS and (code.isupper() or not code.isalpha()):
        return Masked(f"{found.group(1).upper()} {found.group(2).lower()} {MASK}", code)
    kept = _CLOSE.sub(rf"\1\2 {MASK}", text)
    if next(_HINT.finditer(kept), None) is not None or _ALONE.match(kept) is not None:
        kept = _without_codes(kept)
    return Masked(kept)


def _without_codes(text: str) -> str:
    """Answers the text without words in the form of a code; ten small letters with no digit are a word like others."""
    parts, end = [], 0
    for found in _SHAPE.finditer(text):
        word = found.group()
        if word.isupper() or not word.isalpha():
            parts += [text[end : found.start()], MASK]
            end = found.end()
    return "".join([*parts, text[end:]])

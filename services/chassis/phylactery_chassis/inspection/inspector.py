"""Inspection of a text with every rule: resolves overlaps and redacts what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from phylactery_chassis.inspection.assignments import assignments
from phylactery_chassis.inspection.candidates import Candidate, Sight
from phylactery_chassis.inspection.cards import cards
from phylactery_chassis.inspection.codes import codes
from phylactery_chassis.inspection.contacts import addresses, emails, phones
from phylactery_chassis.inspection.credentials import credentials
from phylactery_chassis.inspection.expressions import expression
from phylactery_chassis.inspection.identities import identities
from phylactery_chassis.inspection.kinds import RANK, Confidence, Finding, FindingKind
from phylactery_chassis.inspection.text import Folded, readings

_MANY_DIGITS = expression(r"(?:[0-9][ .()/-]{0,3}){7}")
"""A personal number has at least seven digits close together."""
_ADDRESS_LIKE = expression(r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]|[0-9A-Fa-f]:[0-9A-Fa-f:]+:")

ALL_KINDS = frozenset(FindingKind)
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested kinds and minimum confidence."""

    kinds: frozenset[FindingKind] = ALL_KINDS
    min_confidence: Confidence = Confidence.MEDIUM


EVERYTHING_LIKELY = Wanted()


def inspect(text: str, wanted: Wanted = EVERYTHING_LIKELY) -> tuple[Finding, ...]:
    """Find secrets and personal data, in text order, without overlaps, deterministically.

    Of two candidates for one place the more confident wins, then the more specific kind, then the longer. The request
    is applied only afterwards, so that asking for less never finds something else.
    """
    settled = _settled([found for reading in readings(text) for found in _findings(reading)], len(text))
    return tuple(one for one in settled if one.kind in wanted.kinds and one.confidence >= wanted.min_confidence)


def redact(text: str, wanted: Wanted = EVERYTHING_LIKELY, found: tuple[Finding, ...] | None = None) -> str:
    """Return the text with a placeholder for each finding. Idempotent.

    The result is inspected again, because text may read differently without its neighbours. ``found`` is the result of
    inspect(), if already known.
    """
    for _ in range(_ROUNDS):
        found = inspect(text, wanted) if found is None else found
        if not found:
            break
        text, found = replaced(text, found), None
    return text


def replaced(text: str, findings: tuple[Finding, ...]) -> str:
    """Return the text with a placeholder for each of these findings."""
    pieces: list[str] = []
    written = 0
    for one in findings:
        pieces += (text[written : one.start], one.kind.placeholder)
        written = one.end
    return "".join((*pieces, text[written:]))


def _findings(reading: Folded) -> Iterator[Finding]:
    for one in _candidates(Sight(reading.data)):
        yield Finding(one.kind, *reading.span(one.start, one.end), one.confidence, one.rule)


def _candidates(sight: Sight) -> Iterator[Candidate]:
    yield from credentials(sight)
    yield from assignments(sight)
    yield from codes(sight)
    if b"@" in sight.data:
        yield from emails(sight)
    if _ADDRESS_LIKE.search(sight.data) is not None:
        yield from addresses(sight)
    if _MANY_DIGITS.search(sight.data) is not None:
        yield from identities(sight)
        yield from cards(sight)
        yield from phones(sight)


def _settled(findings: list[Finding], size: int) -> list[Finding]:
    """Return the findings left after overlaps are resolved, in text order."""
    findings.sort(key=lambda one: (-one.confidence, RANK[one.kind], one.start - one.end, one.start, one.rule))
    taken = bytearray(size)
    standing = []
    for one in findings:
        if taken.find(1, one.start, one.end) < 0:
            taken[one.start : one.end] = b"\1" * (one.end - one.start)
            standing.append(one)
    return sorted(standing, key=lambda one: one.start)

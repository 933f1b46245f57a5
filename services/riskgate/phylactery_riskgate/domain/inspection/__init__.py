"""Deterministic inspection of text: secrets and personal data, found by rules and checked by their digits."""

from phylactery_riskgate.domain.inspection.assignments import names_secret
from phylactery_riskgate.domain.inspection.inspector import ALL_KINDS, Wanted, inspect, redact, replaced
from phylactery_riskgate.domain.inspection.kinds import Category, Confidence, Finding, FindingKind

__all__ = [
    "ALL_KINDS",
    "Category",
    "Confidence",
    "Finding",
    "FindingKind",
    "Wanted",
    "inspect",
    "names_secret",
    "redact",
    "replaced",
]

"""Deterministic inspection of text: secrets and personal data, found by rules and check digits.

RiskGate redacts and decides with it, memory refuses writes with it. docs/secrets.md describes and measures it.
"""

from phylactery_chassis.inspection.assignments import as_text, named, names_secret
from phylactery_chassis.inspection.inspector import ALL_KINDS, Wanted, inspect, redact, replaced
from phylactery_chassis.inspection.kinds import Category, Confidence, Finding, FindingKind
from phylactery_chassis.inspection.masks import hidden_kinds, holds_mask, left_out
from phylactery_chassis.inspection.text import masked_kinds

__all__ = [
    "ALL_KINDS",
    "Category",
    "Confidence",
    "Finding",
    "FindingKind",
    "Wanted",
    "as_text",
    "hidden_kinds",
    "holds_mask",
    "inspect",
    "left_out",
    "masked_kinds",
    "named",
    "names_secret",
    "redact",
    "replaced",
]

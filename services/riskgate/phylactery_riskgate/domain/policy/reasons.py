"""RiskGate's own reasons, in English and Spanish; their sentences are in phylactery_riskgate.i18n.

A message never contains an argument's value. Limits in a message come from the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from phylactery_chassis.util.messages import read_messages

from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.model import Reason

MAX_REASONS = 20
MAX_MESSAGE = 300
_ENGLISH: Final = read_messages("phylactery_riskgate.i18n", "en")
_SPANISH: Final = read_messages("phylactery_riskgate.i18n", "es")
_NOT_UNDERSTOOD: Final = "NOT_UNDERSTOOD"


def reason(code: str, *, path: str = "", **values: object) -> Reason:
    """Return the reason for a code; the values fill its texts."""
    return Reason(code, *_told(f"reason_{code}", **values), path)


@lru_cache(maxsize=4096)
def policy_reason(code: str, policy_id: str, title: str, title_es: str, **values: object) -> Reason:
    """Return the reason for a policy that decided; its titles are the bundle's own texts."""
    key = f"reason_{code}"
    english, spanish = _ENGLISH(key, title=title, **values), _SPANISH(key, title=title_es, **values)
    return Reason(code, _cut(english), _cut(spanish), policy_id=policy_id)


def violation_reason(keyword: str, path: str, limit: object) -> Reason:
    """Return the reason for one schema violation; ``limit`` is the schema's, never the call's value."""
    key = f"violation_{keyword}"
    return Reason("SCHEMA_VIOLATION", *_told(key if key in _ENGLISH else "violation_any", limit=limit), path)


def freeze_reason(scope: str) -> Reason:
    """Return the reason for a freeze: its code is always FROZEN, and ``scope`` names in its texts what is frozen."""
    code = f"FROZEN_{scope.upper()}"
    return replace(reason(code if f"reason_{code}" in _ENGLISH else "FROZEN"), code="FROZEN")


def budget_reason(budget: str, limit: str) -> Reason:
    """Return the reason for a budget that a call would exceed; ``limit`` names which of its limits."""
    return Reason("BUDGET_EXCEEDED", *_told(f"budget_{limit}", budget=budget))


def doubts(facts: TaskFacts) -> Iterator[Reason]:
    """Yield what a person who is asked should know: what would be lost, and why it does not count as requested.

    A call without a task has none.
    """
    if not facts.shown:
        return
    if facts.masked:
        yield reason("VALUE_MASKED")
    if facts.cut_short:
        yield reason("READ_IN_PART")
    if kind := facts.missing[0]:
        key = f"doubt_{kind}"
        yield Reason(_NOT_UNDERSTOOD, *_told(key if key in _ENGLISH else "doubt_any"))


def _told(key: str, **values: object) -> tuple[str, str]:
    """Return a message in English and in Spanish."""
    return _cut(_ENGLISH(key, **values)), _cut(_SPANISH(key, **values))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"

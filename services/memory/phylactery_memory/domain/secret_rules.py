"""What must never be remembered, as the detector that RiskGate uses too finds it: passwords, cards, accounts, keys.

Memory refuses rather than redacts: half a secret in a store is a secret in a store.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from phylactery_chassis.inspection import ALL_KINDS, Category, FindingKind, Wanted, inspect, masked_kinds, named


class Secret(StrEnum):
    """What was found."""

    PASSWORD = "SECRET_PASSWORD"  # noqa: S105 - the name of a finding
    CARD = "SECRET_CARD"
    KEY = "SECRET_KEY"


_PASSWORDS: Final = frozenset({FindingKind.PASSWORD, FindingKind.URL_PASSWORD, FindingKind.CONNECTION_PASSWORD})
_NUMBERS: Final = frozenset({FindingKind.CARD, FindingKind.IBAN})
_WANTED: Final = Wanted(frozenset(kind for kind in ALL_KINDS if kind.category is Category.SECRET) | _NUMBERS)


def find_secret(text: str, name: str = "") -> Secret | None:
    """Return the worst sort of secret found in a text, None where there is none.

    name is what the text is the value of: "wifi_password" says of any value what it is. What a redaction took out was
    there: "my password is «password»" is nothing to remember, and whoever said it is told so.
    """
    kinds = {found.kind for found in inspect(named(name, text), _WANTED)}
    sorts = {_sort(kind) for kind in kinds | (masked_kinds(text) & _WANTED.kinds)}
    return next((sort for sort in (Secret.KEY, Secret.CARD, Secret.PASSWORD) if sort in sorts), None)


def _sort(kind: FindingKind) -> Secret:
    if kind in _NUMBERS:
        return Secret.CARD
    return Secret.PASSWORD if kind in _PASSWORDS else Secret.KEY

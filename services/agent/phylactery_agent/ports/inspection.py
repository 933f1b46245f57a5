"""Inspection as the agent sees it: a text in, the same without its secrets out. No found value is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Inspected:
    """A text RiskGate looked at: secrets replaced by placeholders, personal data left in it and named.

    secrets and personal are the kinds found, each once, sorted, in lower case: jwt, card.
    """

    text: str
    secrets: tuple[str, ...] = ()
    personal: tuple[str, ...] = ()


class Inspector(Protocol):
    """RiskGate's inspection on behalf of one end user."""

    async def inspect(self, text: str) -> Inspected:
        """Looks at a text and keeps none of it.

        Raises GateUnavailableError where RiskGate does not answer, GateRefusedError where it does not take the text.
        """
        ...

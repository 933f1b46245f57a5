"""RiskGate's inspection in this process: the real rules, and a switch that makes RiskGate unavailable."""

from __future__ import annotations

from dataclasses import dataclass, field

from phylactery_agent.ports import GateUnavailableError, Inspected
from phylactery_chassis.inspection import ALL_KINDS, Category, FindingKind, Wanted, inspect, redact

_SECRETS = Wanted(frozenset(kind for kind in ALL_KINDS if kind.category is Category.SECRET))


def _names(kinds: set[FindingKind]) -> tuple[str, ...]:
    return tuple(sorted(str(kind.value) for kind in kinds))


@dataclass
class LocalInspector:
    """ports.Inspector with the rules of RiskGate's domain."""

    available: bool = True
    looked_at: list[str] = field(default_factory=list)

    async def inspect(self, text: str) -> Inspected:
        if not self.available:
            raise GateUnavailableError("inspect: RiskGate does not answer")
        self.looked_at.append(text)
        found = {finding.kind for finding in inspect(text)}
        secrets = {kind for kind in found if kind.category is Category.SECRET}
        return Inspected(redact(text, _SECRETS) if secrets else text, _names(secrets), _names(found - secrets))

"""One decision: guard, hash, bind, gather facts, ask Cedar."""

from __future__ import annotations

from phylactery_riskgate.domain.bundle import Bundle
from phylactery_riskgate.domain.model import Caller, CallSite, RawCall, Verdict


class DecisionEngine:
    """Decides about calls under one bundle; the same inputs always give the same verdict."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    @property
    def bundle(self) -> Bundle:
        """The bundle it decides by."""
        return self._bundle

    def decide(
        self, call: RawCall, caller: Caller, site: CallSite, *, approved: frozenset[str] = frozenset()
    ) -> Verdict:
        """Decides about one call; a bad call is BLOCKED, never an exception."""
        raise NotImplementedError(call, caller, site, approved)

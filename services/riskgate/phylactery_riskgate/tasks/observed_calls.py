"""Checks of observed calls: the decisions and the redemption that RiskGate knows of them."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import FailedPrecondition
from phylactery_chassis.util.crypto import sha256
from sqlalchemy.engine import Connection

from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.proposals import key_of
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.model import Json
from phylactery_riskgate.store.decisions import DecisionRecord, decisions_of_call
from phylactery_riskgate.store.redemptions import find_redemption
from phylactery_riskgate.tasks.requests import ObserveInput


@dataclass(frozen=True, slots=True)
class Ran:
    """The arguments a tool ran with; ``unproven`` marks a write without a known redemption."""

    arguments: Json
    unproven: bool


class ObservedCalls:
    """Comparison of observed calls with their decisions and redemption."""

    def __init__(self, core: DecisionContext) -> None:
        self._core = core

    def check(self, connection: Connection, who: Principal, asked: ObserveInput, *, thread_id: str, shown: Json) -> Ran:
        """Return what is known of a call; ``shown`` are its observed arguments.

        Raise FailedPrecondition ARGS_MISMATCH if it has decisions, but none of them is about the call as observed.
        """
        engine = self._core.engine
        tool = engine.bundle.tools.get(asked.tool)
        decided = decisions_of_call(connection, key_of(who, asked.run_id, asked.tool_call_id), thread_id)
        own = [one for one in decided if one.tool == asked.tool and self._agrees(one, asked, shown)]
        if decided and not own:
            raise FailedPrecondition(
                "ARGS_MISMATCH",
                f"RiskGate decided about '{asked.tool_call_id}' as another call; show the tool and the bound arguments "
                "that Redeem answered, or the run_id of the call where its id is used again",
                metadata={"factor": "argument_hash"},
            )
        unproven = tool is not None and tool.effect != "read" and not self._redeemed(connection, who, own)
        bound = self._core.bound_of(connection, own[0]) if own and not asked.arguments_json else None
        return Ran(shown if bound is None else dict(bound.arguments), unproven)

    def _agrees(self, decision: DecisionRecord, asked: ObserveInput, shown: Json) -> bool:
        """Return True if a decision of the same tool is about these arguments, raw or bound."""
        if not asked.arguments_json or not decision.args_hash:
            return True
        if self._core.same_hash(decision, decision.args_hash, sha256(canonical_bytes(shown))):
            return True
        return self._core.same_call(decision, self._core.engine.bind(decision.tool, shown))

    def _redeemed(self, connection: Connection, who: Principal, own: list[DecisionRecord]) -> bool:
        ids = {one.id for one in own}
        found = (
            find_redemption(connection, key_of(who, run_id, own[0].tool_call_id))
            for run_id in dict.fromkeys(one.run_id for one in own)
        )
        return any(one is not None and one.decision_id in ids for one in found)

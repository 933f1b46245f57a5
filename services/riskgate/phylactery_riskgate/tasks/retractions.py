"""Retractions: calls that later words of a user took back (ADR 34).

A retraction is stored without its words: effects by the names common to all lexicons, nouns and targets as keyed
hashes. So it outlives the task that stated it, and does not reveal what was said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.util.crypto import sha256
from phylactery_understanding.calls.proposal import plain_values
from phylactery_understanding.replies.retraction import Forbidden, Retraction, forbids, targets_in
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import ApprovalEvent, ClosedReason, advance
from phylactery_riskgate.audit.commitments import KeyedHashes
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.decisions.context import DecisionContext, about
from phylactery_riskgate.domain.intent.understood import kind_of
from phylactery_riskgate.domain.model import BoundCall, CatalogTool
from phylactery_riskgate.store import approvals as approval_rows
from phylactery_riskgate.store import asks as rows
from phylactery_riskgate.store.asks import ForbiddenRow, RetractionRow
from phylactery_riskgate.store.decisions import find_decision

_MAX_VALUES = 500
"""Maximum values of a call that are compared with targets; a call with more values always matches."""
_MAX_NAMING = 1_000
"""Maximum characters of a value searched for names; a longer one is compared only as a whole."""


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The retractions of one user, searchable by call."""

    hashes: KeyedHashes
    who: Principal
    retractions: Sequence[RetractionRow]

    def by(self, tool: CatalogTool | None, bound: BoundCall | None, task_ids: Iterable[str]) -> str:
        """Return the newest task whose words took back a call of these tasks, or an empty string."""
        names = frozenset(task_ids)
        for one in reversed(self.retractions):
            if one.task_id in names and (
                one.everything or any(self._means(part, tool, bound) for part in one.forbidden)
            ):
                return one.by_task_id
        return ""

    def _means(self, part: ForbiddenRow, tool: CatalogTool | None, bound: BoundCall | None) -> bool:
        """Return True if a retraction covers a call; an unknown call is treated as covered."""
        if tool is None or bound is None:
            return True
        effects, nouns = kind_of(tool)
        if not forbids(Forbidden(part.effects, part.nouns), effects, self._kept("noun", nouns)):
            return False
        values = list(plain_values(bound.arguments))
        if not part.targets or len(values) > _MAX_VALUES:
            return True
        return any(not part.targets.isdisjoint(self._kept("target", _names(value))) for value in values)

    def _kept(self, kind: str, texts: Iterable[str]) -> frozenset[str]:
        return _hashed(self.hashes, self.who, kind, texts)


def retract(  # noqa: PLR0917 - its only caller passes all of it
    core: DecisionContext,
    connection: Connection,
    who: Principal,
    told: Retraction,
    by_task_id: str,
    earlier: Sequence[str],
    now_us: int,
) -> dict[str, Any]:
    """Record what a message takes back from earlier tasks, and close the open approvals of their calls.

    Return the fields for the record of the message. Raise BusyError if another replica redeems such a call, or holds
    such an approval.
    """
    rows.lock(connection, who.tenant, who.subject, earlier)
    forbidden = tuple(
        ForbiddenRow(
            one.effects,
            _hashed(core.hashes, who, "noun", one.nouns),
            _hashed(core.hashes, who, "target", one.targets),
        )
        for one in told.forbidden
    )
    made = [RetractionRow(task_id, by_task_id, told.everything, forbidden) for task_id in earlier]
    for one in made:
        rows.insert_retraction(connection, who.tenant, who.subject, one, now_us)
    closed = list(_close(core, connection, TakenBack(core.hashes, who, made), by_task_id, earlier, now_us))
    return {"retracts": {"tasks": list(earlier), "everything": told.everything, "approvals": closed}}


def _close(  # noqa: PLR0917 - its only caller passes all of it
    core: DecisionContext,
    connection: Connection,
    taken: TakenBack,
    by_task_id: str,
    earlier: Sequence[str],
    now_us: int,
) -> Iterator[str]:
    who, tools = taken.who, core.live.held.bundle.tools
    for approval_id in approval_rows.find_open(connection, who.tenant, who.subject):
        record = None
        approval = core.find_approval(connection, who.tenant, approval_id)
        if approval is not None:
            record = find_decision(connection, who.tenant, approval.decision_id)
        if approval is None or record is None:
            continue
        task_id = core.snapshot_of(connection, record).task_id
        if task_id not in earlier or not taken.by(
            tools.get(approval.tool), core.bound_of(connection, record), [task_id]
        ):
            continue
        approval = core.find_approval(connection, who.tenant, approval_id, lock=True)
        approval = approval and core.current(connection, approval, who, now_us)
        if not approval or not approval.open:
            continue
        state, reason = advance(approval.state, ApprovalEvent.CANCEL), str(ClosedReason.RETRACTED)
        approval = core.change_approval(connection, replace(approval, state=state, closed_reason=reason), now_us)
        core.note(connection, Kind.APPROVAL_CLOSED, who, now_us, about(approval) | {"retracted_by": by_task_id})
        yield approval.id


def _hashed(hashes: KeyedHashes, who: Principal, kind: str, texts: Iterable[str]) -> frozenset[str]:
    return frozenset(
        hashes.keep(who.tenant, who.subject, kind, sha256(text.encode("utf-8", "surrogatepass"))) for text in texts
    )


def _names(value: Any) -> frozenset[str]:
    text = value if isinstance(value, str) else str(value)
    return targets_in(text) if len(text) <= _MAX_NAMING else frozenset({text})

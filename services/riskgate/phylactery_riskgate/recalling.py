"""A recorded decision as a question that can be asked again: the same call, user, place, approvals and counters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from phylactery_riskgate.audit import AuditLog, Kind
from phylactery_riskgate.call_values import ARGS_HASH, CLAIMED_HASH, PLAN_STEP, RAW_ARGUMENTS, bound_arguments, hash_of
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.engine import DecisionEngine
from phylactery_riskgate.domain.model import Caller, CallSite, CatalogTool, Counters, Decision, RawCall, Verdict
from phylactery_riskgate.domain.usage import Charge
from phylactery_riskgate.store.audit_search import Bounds, FoundEntry, Position, scan
from phylactery_riskgate.task_records import Told, recorded_told
from phylactery_riskgate.usage import recorded_usage

Outlook = tuple[str, str]
"""A decision, and the class it asks for."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One recorded decision and what it rested on; a budget nobody had counted for then has counted nothing.

    What its task told then counts: what the task was shown is not kept as long as its decisions are.
    """

    decision_id: str
    time_us: int
    outlook: Outlook
    bundle_revision: int
    bundle_hash: str
    call: RawCall
    caller: Caller
    site: CallSite
    approved: frozenset[str]
    usage: Mapping[str, Counters]
    told: Told

    def ask(self, engine: DecisionEngine, **more: Any) -> Verdict:
        """Decides again, under an engine."""
        return engine.decide(
            self.call,
            self.caller,
            self.site,
            approved=self.approved,
            usage=self._read_usage,
            task=self.told.reader,
            **more,
        )

    def _read_usage(self, tool: CatalogTool, charge: Charge) -> dict[str, Counters]:
        nothing = Counters(0, 0, 0, len(charge.recipients))
        return {budget.name: self.usage.get(budget.name, nothing) for budget in tool.budgets}


@dataclass(frozen=True, slots=True)
class Lost:
    """A recorded decision that cannot be asked again.

    Its values were erased, its arguments were no JSON to keep, or a freeze decided it and no policy.
    """

    decision_id: str
    erased: bool
    frozen: bool = False


def recall(connection: Connection, audit: AuditLog, tenant: str, entry: FoundEntry) -> Recalled | Lost:
    """Answers the question behind the record of a decision. Raises DataLoss when its values were altered."""
    record: dict[str, Any] = json.loads(entry.stored.record)
    if record.get("frozen"):
        return Lost(record["decision_id"], erased=False, frozen=True)
    values = audit.values(connection, tenant, entry.place) if record.get("values") else {}
    call = None if values is None else _call_of(record, values)
    if values is None or call is None:
        bound = bool(record.get("args_hash")) or ARGS_HASH in (values or {})
        return Lost(record["decision_id"], erased=values is None or bound)
    who = record["caller"]
    caller = Caller(record["subject"], tenant, who["level"], frozenset(who["groups"]), direct=who["direct"])
    site = CallSite(
        record["thread_id"],
        record["run_id"],
        str(values.get(PLAN_STEP, "")),
        record["thread_tenant"],
        record["pathway"],
    )
    return Recalled(
        decision_id=record["decision_id"],
        time_us=record["time_us"],
        outlook=(record["decision"], record["approval_class"]),
        bundle_revision=record["bundle_revision"],
        bundle_hash=record["bundle_hash"],
        call=call,
        caller=caller,
        site=site,
        approved=frozenset(record["approved"]),
        usage=recorded_usage(values),
        told=recorded_told(values),
    )


def _call_of(record: Mapping[str, Any], values: Mapping[str, Any]) -> RawCall | None:
    """Answers the call as it was bound, or as it came where nothing bound it; None where neither is kept.

    What a caller claims of a bound call held then. Of one that was not bound it may hold under another bundle.
    """
    tool, call_id = record["tool"], record["tool_call_id"]
    told = values.get(ARGS_HASH) or record.get("args_hash")  # records of version 1 held it themselves
    if told:
        text = canonical_bytes(bound_arguments(values))
        return RawCall(tool, call_id, arguments_json=text.decode()) if hash_of(text) == told else None
    if RAW_ARGUMENTS not in values:
        return None
    raw = values[RAW_ARGUMENTS]
    shape = "arguments_json" if isinstance(raw, str) else "arguments_struct"
    claimed = {"raw_args_hash": values[CLAIMED_HASH]} if CLAIMED_HASH in values else {}
    return RawCall(tool, call_id, **{shape: raw}, **record["claimed"], **claimed)


def recall_page(
    connection: Connection, audit: AuditLog, tenant: str, *, since_us: int, after: Position | None, limit: int
) -> tuple[list[Recalled | Lost], Position | None]:
    """Answers a tenant's decisions, newest first, and where the next page begins, None where this is the last."""
    bounds = Bounds(kind=str(Kind.DECISION), start_us=since_us)
    entries = list(scan(connection, tenant, bounds, after=after, limit=limit))
    found = [recall(connection, audit, tenant, entry) for entry in entries]
    return found, entries[-1].position if len(entries) == limit else None


def outlook_of(verdict: Verdict) -> Outlook:
    """Answers what a verdict decides."""
    return str(verdict.decision), verdict.approval_class or ""


def openness(outlook: Outlook, ranks: Mapping[str, int]) -> int:
    """Answers how close a call came to running; a class nobody knows any more counts as the furthest."""
    decision, approval_class = outlook
    if decision == Decision.ALLOW:
        return len(ranks) + 1
    return len(ranks) - ranks.get(approval_class, len(ranks)) if decision == Decision.AUTH_REQUIRED else -1

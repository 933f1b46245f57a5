"""Replay of recorded decisions under another bundle, reporting those that differ. Records nothing."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.util.crypto import sha256
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.commitments import (
    ARGS_HASH,
    CLAIMED_HASH,
    NULLS,
    PLAN_STEP,
    RAW_ARGUMENTS,
    bound_arguments,
)
from phylactery_riskgate.audit.log import AuditLog, Kind
from phylactery_riskgate.bundles.acceptance import invalid
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.usage import recorded_usage
from phylactery_riskgate.domain.bundle.bundle import BundleError, read_bundle
from phylactery_riskgate.domain.bundle.files import read_parts
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.model import Caller, CallSite, CatalogTool, Counters, Decision, RawCall, Verdict
from phylactery_riskgate.domain.pointers import with_null
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.usage import LINE_OWED, UNDO_FAILED, Charge
from phylactery_riskgate.store.audit_search import Bounds, FoundEntry, Position, scan
from phylactery_riskgate.tasks.snapshot import TaskSnapshot, recorded_snapshot

Outlook = tuple[str, str]
"""A decision and the approval class it requires."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One recorded decision and its inputs; a budget without recorded counts has counted nothing.

    The recorded task facts count, because the input of a task is not kept as long as its decisions.
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
    told: TaskSnapshot

    def ask(self, engine: DecisionEngine, **more: Any) -> Verdict:
        """Decide again with an engine."""
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
        known = {name: self.usage[name] for name in (UNDO_FAILED, LINE_OWED) if name in self.usage}
        return {budget.name: self.usage.get(budget.name, nothing) for budget in tool.budgets} | known


@dataclass(frozen=True, slots=True)
class Lost:
    """A recorded decision that cannot be repeated.

    Its values were erased, its arguments were not valid JSON and so not kept, or a freeze decided it instead of a
    policy.
    """

    decision_id: str
    erased: bool
    frozen: bool = False


def recall(connection: Connection, audit: AuditLog, tenant: str, entry: FoundEntry) -> Recalled | Lost:
    """Return the question behind the record of a decision. Raise DataLoss if its values were altered."""
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
        told=recorded_snapshot(values),
    )


def _call_of(record: Mapping[str, Any], values: Mapping[str, Any]) -> RawCall | None:
    """Return the call as bound, or as it came if it was not bound; None if neither is kept.

    The nulls that were left out of a bound call are in it again: policies see them.
    Claims about a bound call held when it was decided. Claims about an unbound one may hold under another bundle.
    """
    tool, call_id = record["tool"], record["tool_call_id"]
    told = values.get(ARGS_HASH) or record.get("args_hash")  # records of version 1 held the hash themselves
    if told:
        arguments = bound_arguments(values)
        if sha256(canonical_bytes(arguments)) != told:
            return None
        for place in values.get(NULLS, ()):
            with_null(arguments, place)
        return RawCall(tool, call_id, arguments_json=canonical_bytes(arguments).decode())
    if RAW_ARGUMENTS not in values:
        return None
    raw = values[RAW_ARGUMENTS]
    shape = "arguments_json" if isinstance(raw, str) else "arguments_struct"
    claimed = {"raw_args_hash": values[CLAIMED_HASH]} if CLAIMED_HASH in values else {}
    return RawCall(tool, call_id, **{shape: raw}, **record["claimed"], **claimed)


def recall_page(
    connection: Connection, audit: AuditLog, tenant: str, *, since_us: int, after: Position | None, limit: int
) -> tuple[list[Recalled | Lost], Position | None]:
    """Return a tenant's decisions, newest first, and where the next page begins, or None on the last page."""
    bounds = Bounds(kind=str(Kind.DECISION), start_us=since_us)
    entries = list(scan(connection, tenant, bounds, after=after, limit=limit))
    found = [recall(connection, audit, tenant, entry) for entry in entries]
    return found, entries[-1].position if len(entries) == limit else None


def outlook_of(verdict: Verdict) -> Outlook:
    """Return the outlook of a verdict."""
    return str(verdict.decision), verdict.approval_class or ""


def openness(outlook: Outlook, ranks: Mapping[str, int]) -> int:
    """Return how close a call came to running; an unknown class counts as the furthest."""
    decision, approval_class = outlook
    if decision == Decision.ALLOW:
        return len(ranks) + 1
    return len(ranks) - ranks.get(approval_class, len(ranks)) if decision == Decision.AUTH_REQUIRED else -1


MAX_DECISIONS = 100_000
DEFAULT_DECISIONS = 10_000
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Flip:
    """One call that another bundle decides differently."""

    decision_id: str
    tool: str
    time_us: int
    before: Outlook
    after: Outlook
    policy_ids: tuple[str, ...]
    widens: bool


@dataclass(slots=True)
class Summary:
    """The result of a replay: ``erased``, ``unbound`` and ``frozen`` decisions could not be repeated."""

    revision: int
    replayed: int = 0
    flipped: int = 0
    erased: int = 0
    unbound: int = 0
    frozen: int = 0
    changes: Counter[tuple[Outlook, Outlook]] = field(default_factory=Counter)


class Replay:
    """One replay under one engine; feed it pages, then read its summary."""

    def __init__(self, engine: DecisionEngine) -> None:
        self._engine = engine
        self._ranks = {one.name: one.rank for one in engine.bundle.classes}
        self.summary = Summary(engine.bundle.revision)

    def decide(self, page: Iterable[Recalled | Lost]) -> Iterator[Flip]:
        """Decide each again and yield those that flip."""
        for one in page:
            if isinstance(one, Lost):
                self.summary.erased += one.erased
                self.summary.frozen += one.frozen
                self.summary.unbound += not (one.erased or one.frozen)
                continue
            verdict = one.ask(self._engine)
            after = outlook_of(verdict)
            self.summary.replayed += 1
            if after == one.outlook:
                continue
            self.summary.flipped += 1
            self.summary.changes[one.outlook, after] += 1
            widens = openness(after, self._ranks) > openness(one.outlook, self._ranks)
            yield Flip(one.decision_id, one.call.tool, one.time_us, one.outlook, after, verdict.policy_ids, widens)


def replay_all(
    connection: Connection, audit: AuditLog, tenant: str, replay: Replay, *, since_us: int, limit: int
) -> Iterator[Flip]:
    """Replay a tenant's decisions over one connection."""
    after: Position | None = None
    while limit > 0:
        page, after = recall_page(connection, audit, tenant, since_us=since_us, after=after, limit=min(limit, _PAGE))
        yield from replay.decide(page)
        limit -= len(page)
        if after is None:
            return


class Replays:
    """The replay use case."""

    def __init__(self, core: DecisionContext) -> None:
        self._core = core

    async def run(
        self, who: Principal, parts: Iterable[tuple[str, bytes]], *, since_us: int, limit: int
    ) -> AsyncIterator[Flip | Summary]:
        """Yield every flip of the caller's tenant, newest first, then the summary.

        Raise InvalidArgument BUNDLE_INVALID and Unavailable STORE_UNAVAILABLE.
        """
        if Role.INSTALLATION_OPERATOR not in who.roles:
            who.require(Role.POLICY_ADMIN)

        def prepare() -> Replay:
            try:
                return Replay(DecisionEngine(read_bundle(read_parts(parts))))
            except BundleError as error:
                raise invalid(error) from None

        replay, left, after = await asyncio.to_thread(prepare), limit or DEFAULT_DECISIONS, None
        while left > 0:
            page, after = await self._core.database.read(self._reader(who, since_us, after, min(left, _PAGE)))
            left -= len(page)
            for flip in await asyncio.to_thread(_listed, replay, page):
                yield flip
            if after is None:
                break
        yield replay.summary

    def _reader(
        self, who: Principal, since_us: int, after: Position | None, limit: int
    ) -> Callable[[Connection], tuple[list[Recalled | Lost], Position | None]]:
        return lambda connection: recall_page(
            connection, self._core.audit, who.tenant, since_us=since_us, after=after, limit=limit
        )


def _listed(replay: Replay, page: list[Recalled | Lost]) -> list[Flip]:
    return list(replay.decide(page))

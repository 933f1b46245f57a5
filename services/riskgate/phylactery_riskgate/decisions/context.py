"""State and steps shared by the use cases: database, decision, keys, log and clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.jobs import Work
from phylactery_chassis.errors import DomainError, Unavailable
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crypto import sha256
from phylactery_chassis.util.limits import TextWork
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from phylactery_riskgate.approvals.model import (
    Approval,
    ApprovalEvent,
    ApprovalState,
    ClosedReason,
    advance,
    approval_code,
)
from phylactery_riskgate.approvals.validity import may_answer
from phylactery_riskgate.approvals.vote_proofs import VoteProofs
from phylactery_riskgate.audit.commitments import (
    ARGS_COMMITMENT,
    ARGS_HASH,
    PLAN_STEP,
    KeyedHashes,
    bound_arguments,
)
from phylactery_riskgate.audit.entries import record_of
from phylactery_riskgate.audit.log import AuditLog, Entry, Kind
from phylactery_riskgate.audit.merkle import leaf_hash
from phylactery_riskgate.bundles.live import LiveBundle
from phylactery_riskgate.decisions.proposals import caller_of
from phylactery_riskgate.decisions.usage import Counting
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.intent.facts import IndexReader
from phylactery_riskgate.domain.model import BoundCall, CallSite, RawCall, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import TaskReader
from phylactery_riskgate.domain.policy.usage import UsageReader, is_over
from phylactery_riskgate.domain.views.view import CallView, call_view
from phylactery_riskgate.domain.views.why import Line, why_asked
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.notices.outbox import Outbox
from phylactery_riskgate.store import approvals as approval_rows
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.decisions import DecisionRecord, find_decision, revoked_of
from phylactery_riskgate.store.locks import BusyError
from phylactery_riskgate.tasks.snapshot import NO_SNAPSHOT, TaskSnapshot, recorded_snapshot, snapshot_of

T = TypeVar("T")

_TRIES = 100
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.002, 0.1
_LISTED_ROOM = 8 * 1024
"""Maximum characters of displayed values per approval in a list, so that a full page fits in one message."""
_ON_RECORD = (
    "tenant",
    "subject",
    "run_id",
    "tool_call_id",
    "counted_approval_id",
    "thread_id",
    "tool",
    "tool_version",
    "bundle_revision",
    "risk",
    "approval_id",
    "pathway",
)
"""Columns of a decision's row that repeat fields of its record under the same name."""
_SMALL_CHARACTERS = 256
"""A call up to this size is decided in about the time that recording it takes, even one of adversarial text."""
_UNMEASURED_CHARACTERS = 16 * 1024
"""What a call without a JSON text, or of a large task, counts at least."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal that was recorded: returned instead of raised, so that its record is committed; then raised."""

    error: DomainError


class Basis(NamedTuple):
    """The inputs of a decision besides the call, so that it can be repeated with newer counters."""

    engine: DecisionEngine
    who: Principal
    site: CallSite
    approved: frozenset[str]


@dataclass(frozen=True, slots=True)
class ApprovalSeen:
    """An approval as one person may see it; code is empty unless that person may type it.

    ``policies`` are those that require the approval, as id, title and Spanish title. ``compared_id`` is the approval
    whose call the view compares with. ``answerable`` is True if this person's yes would count. ``args_hash`` is the
    hash of the arguments, empty once their values were erased.
    """

    approval: Approval
    view: CallView
    policies: tuple[tuple[str, str, str], ...] = ()
    code: str = ""
    compared_id: str = ""
    answerable: bool = False
    args_hash: str = ""
    why: tuple[Line, ...] = ()
    """Why it is asked and what a yes does; empty in lists and streams, and once the values were erased."""


class _Patience:
    """Retry budget of one caller that waits for other replicas, with exponential backoff."""

    def __init__(self) -> None:
        self._left, self._pause = _TRIES, _FIRST_PAUSE_SECONDS

    async def wait(self) -> None:
        """Sleep before the next try. Raise Unavailable STORE_UNAVAILABLE if no tries are left."""
        self._left -= 1
        if self._left <= 0:
            raise Unavailable("STORE_UNAVAILABLE", "write conflict with other replicas; nothing changed, retry")
        await asyncio.sleep(random.uniform(0, self._pause))  # noqa: S311 - jitter, so that replicas do not collide again
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The parts of one RiskGate, all set at start."""

    database: Database
    live: LiveBundle
    keys: LiveKeys
    audit: AuditLog
    clock: Clock
    issuer: str
    permit_ttl_seconds: int
    decision_ttl_seconds: int
    usage: Counting
    hashes: KeyedHashes
    votes: VoteProofs
    threads: TextWork
    notices: Outbox

    async def write(self, work: Work[T | Refused]) -> T:
        """Run work durably and raise what it refused.

        If another process wrote the same row first, work runs once more and finds it. While another replica holds the
        same approval or counters, work is retried. A store that still refuses is Unavailable STORE_UNAVAILABLE: nothing
        is decided without a record.
        """
        return await self._write_patiently(work, _Patience())

    async def _write_patiently(self, work: Work[T | Refused], patience: _Patience) -> T:
        while True:
            try:
                result = await self._write_once(work)
                break
            except BusyError:
                await patience.wait()
        if isinstance(result, Refused):
            raise result.error
        return result

    async def _write_once(self, work: Work[T | Refused]) -> T | Refused:
        try:
            try:
                return await self.database.write(work)
            except IntegrityError:
                return await self.database.write(work)
        except SQLAlchemyError as error:
            raise _unrecorded(error) from error

    async def write_all(self, works: Sequence[Work[T | Refused]]) -> list[T | DomainError]:
        """Run several works as write does, submitted together, and return each result or its error.

        They share one retry budget for other replicas, in their order.
        """
        ended, patience = await self.database.write_all(works), _Patience()
        return [await self._came_to(work, result, patience) for work, result in zip(works, ended, strict=True)]

    async def _came_to(
        self, work: Work[T | Refused], result: T | Refused | BaseException, patience: _Patience
    ) -> T | DomainError:
        if isinstance(result, Refused):
            return result.error
        if not isinstance(result, BaseException) or isinstance(result, DomainError):
            return result
        if isinstance(result, BusyError | IntegrityError):  # another writer was faster: retry this work alone
            try:
                return await self._write_patiently(work, patience)
            except DomainError as error:
                return error
        if isinstance(result, SQLAlchemyError):
            return _unrecorded(result)
        raise result

    @property
    def engine(self) -> DecisionEngine:
        """The current engine; a use case reads it once."""
        return self.live.engine

    async def decide(
        self,
        engine: DecisionEngine,
        who: Principal,
        call: RawCall,
        site: CallSite,
        approved: frozenset[str],
        *,
        task: TaskReader | None = None,
        counted_later: bool = False,
    ) -> Verdict:
        """Decide about a call, with the facts its task provides.

        All but small calls are decided in a thread, where callers take turns: reading a megabyte would block the event
        loop, and so would hundreds of small hostile texts. A call of a budgeted tool is decided with the current
        counts; with counted_later it is only bound, for decide_counted.
        """

        def ask(usage: UsageReader | None = None) -> Verdict:
            return engine.decide(call, caller_of(who), site, approved=approved, usage=usage, task=task)

        if engine.counts(call.tool) and not counted_later:
            now_us = self.clock.now_us()
            return await self.database.read(lambda opened: ask(self.usage.reader(opened, who, site, now_us)))
        characters = len(call.arguments_json or "") if call.arguments_struct is None else _UNMEASURED_CHARACTERS
        if isinstance(task, IndexReader) and (work := task.work):
            characters = max(characters, _UNMEASURED_CHARACTERS, work)
        if characters <= _SMALL_CHARACTERS:
            return ask()
        return await self.threads.run((who.tenant, who.subject), characters, ask)

    def decide_counted(self, connection: Connection, basis: Basis, verdict: Verdict, *, lock: bool = False) -> Verdict:
        """Decide about a bound call with the current budget counts, inside the transaction that records it.

        With lock, no other transaction counts there until the commit; raise BusyError if another replica holds the
        lock. A tool without a budget keeps its verdict.
        """
        counted = verdict.bound is not None and basis.engine.counts(verdict.bound.tool)
        return self.decide_again(connection, basis, verdict, lock=lock) if counted else verdict

    def decide_again(self, connection: Connection, basis: Basis, verdict: Verdict, *, lock: bool = False) -> Verdict:
        """Decide about a bound call once more, inside a transaction, because its inputs have changed."""
        usage = self.usage.reader(connection, basis.who, basis.site, self.clock.now_us(), lock=lock)
        caller = caller_of(basis.who)
        return basis.engine.decide_again(verdict, caller, basis.site, approved=basis.approved, usage=usage)

    def is_over(self, connection: Connection, basis: Basis, bound: BoundCall, waiting: Sequence[BoundCall]) -> bool:
        """Return True if a budget would not cover a call after those that wait."""
        tools = basis.engine.bundle.tools
        reader = self.usage.reader(connection, basis.who, basis.site, self.clock.now_us())
        return is_over(tools[bound.tool], bound, [(tools[one.tool], one) for one in waiting], reader)

    def call_of(self, connection: Connection, approval: Approval) -> BoundCall | None:
        """Return the call an approval is for, or None once it was erased."""
        return self._asked_for(connection, approval)[0]

    def count(self, connection: Connection, basis: Basis, bound: BoundCall, *, receipt_id: str, now_us: int) -> None:
        """Count a redeemed call in the budgets of its tool; decide_counted has locked the counters."""
        tool = basis.engine.bundle.tools[bound.tool]
        self.usage.count(connection, basis.who, basis.site, tool, bound, receipt_id=receipt_id, now_us=now_us)

    def bound_of(self, connection: Connection, record: DecisionRecord) -> BoundCall | None:
        """Return the bound call of a decision, or None if binding failed or the values were erased."""
        return self._bound_by(record, self._values_of(connection, record))

    def on_record(self, connection: Connection, record: DecisionRecord) -> bool:
        """Return True if the audit log agrees with a decision's row; an attacker with database access can edit rows.

        The entry is checked against its leaf, which signed heads cover.
        """
        entry = self.audit.entry(connection, record.tenant, Place(record.audit_log, record.audit_index))
        if entry is None or leaf_hash(entry.record) != entry.leaf:
            return False
        told = record_of(entry.record)
        what = {"kind": str(Kind.DECISION), "decision_id": record.id, "decision": str(record.decision)}
        place = {"log": record.audit_log, "index": record.audit_index}
        if any(told.get(name) != value for name, value in (what | place).items()):
            return False
        values = told.get("values")
        bound = values.get(ARGS_HASH, "") if isinstance(values, dict) else ""
        # records of earlier versions lack some of these fields
        same = all(told.get(name, value) == value for name in _ON_RECORD for value in (getattr(record, name),))
        if not same or told.get("policy_ids") != list(record.policy_ids):
            return False
        if not record.args_commitment:  # a row of an earlier version: the values sealed beside the entry prove its call
            return self.bound_of(connection, record) is not None
        return bool(bound == record.args_commitment)

    def same_call(self, record: DecisionRecord, bound: BoundCall | None) -> bool:
        """Return True if a call is the one a decision is about, compared by the hash that outlives its values."""
        return bound is not None and self.same_hash(record, record.args_hash, bound.args_hash)

    def same_hash(self, record: DecisionRecord, kept: str, plain: str) -> bool:
        """Return True if the hash a decision stores is that of ``plain``."""
        return self.hashes.same(kept, record.tenant, record.subject, record.tool, plain)

    def bound_as_kept(self, approval: Approval, bound: BoundCall) -> str:
        """Return the stored form of a call's hash, also for an approval of its former spelling."""
        former = "" if bound.former is None else self.as_kept(approval, bound.former.args_hash)
        return former if former == approval.args_hash else self.as_kept(approval, bound.args_hash)

    def as_kept(self, approval: Approval, plain: str) -> str:
        """Return the stored form of an arguments hash if it is the approval's, otherwise the hash itself."""
        same = self.hashes.same(approval.args_hash, approval.tenant, approval.requester, approval.tool, plain)
        return approval.args_hash if same else plain

    def _bound_by(self, record: DecisionRecord, values: Mapping[str, Any] | None) -> BoundCall | None:
        if not record.args_hash or values is None:
            return None
        arguments = bound_arguments(values)
        text = canonical_bytes(arguments)
        bound = BoundCall(record.tool, record.tool_version, arguments, text.decode(), sha256(text))
        return bound if self.same_call(record, bound) else None

    def revoked_alike(
        self, connection: Connection, who: Principal, thread_id: str, bound: BoundCall, told: TaskSnapshot
    ) -> bool:
        """Return True if an operator revoked a decision about the same call for the same request.

        A call is the same whatever its id and its run. What the user asks for anew, in a task that does not confirm the
        revoked one's ask, is another request; without tasks, a thread is one request.
        """
        revoked = revoked_of(connection, tenant=who.tenant, subject=who.subject, thread_id=thread_id, tool=bound.tool)
        forms = (bound,) if bound.former is None else (bound, bound.former)
        for record in revoked:
            if any(self.same_call(record, one) for one in forms):
                earlier = self.snapshot_of(connection, record)
                if earlier.task_id == told.task_id or (told.facts.ask and earlier.facts.ask == told.facts.ask):
                    return True
        return False

    def snapshot_of(self, connection: Connection, record: DecisionRecord) -> TaskSnapshot:
        """Return the task facts a decision was based on."""
        return self._told_by(connection, record, self._values_of(connection, record))

    def rest_of(self, connection: Connection, record: DecisionRecord) -> tuple[str, TaskSnapshot]:
        """Return the plan step of a decision and the task facts it was based on."""
        values = self._values_of(connection, record)
        return str((values or {}).get(PLAN_STEP, "")), self._told_by(connection, record, values)

    def _values_of(self, connection: Connection, record: DecisionRecord) -> dict[str, Any] | None:
        return self.audit.values(connection, record.tenant, Place(record.audit_log, record.audit_index))

    def _told_by(
        self, connection: Connection, record: DecisionRecord, values: Mapping[str, Any] | None
    ) -> TaskSnapshot:
        return snapshot_of(connection, record.tenant, Place(record.audit_log, record.audit_index), values)

    def seen(
        self, connection: Connection, approval: Approval, viewer: Principal, *, listed: bool = False, full: bool = False
    ) -> ApprovalSeen:
        """Return an approval as this person may see it; a list omits codes and comparisons and shortens long values.

        With ``full``, long values are shown whole.
        """
        bundle = self.engine.bundle
        titles = {policy.id: policy for policy in bundle.policies if policy.id in approval.policy_ids}
        policies = tuple(
            (one, titles[one].title, titles[one].title_es) if one in titles else (one, "", "")
            for one in approval.policy_ids
        )
        seen = ApprovalSeen(
            approval,
            CallView(()),
            policies,
            self._code_for(approval, viewer, listed=listed),
            answerable=may_answer(bundle, approval, viewer),
        )
        (bound, told), tool = self._asked_for(connection, approval), bundle.tools.get(approval.tool)
        if bound is None:
            return seen
        seen = replace(seen, args_hash=bound.args_hash)
        if tool is None:
            return seen
        if listed:
            return replace(seen, view=call_view(bound, tool, task=told.facts, room=_LISTED_ROOM))
        own_words = viewer.subject == approval.requester
        seen = replace(seen, why=why_asked(tool, bound, told.facts, policies, own_words=own_words))
        last = approval_rows.find_last_approved(
            connection,
            approval.tenant,
            approval.requester,
            tool=approval.tool,
            before_us=approval.decide_us or self.clock.now_us(),
            but_id=approval.id,
        )
        previous = None if last is None else self._asked_for(connection, last)[0]
        if last is None or previous is None:
            return replace(seen, view=call_view(bound, tool, task=told.facts, full=full))
        view = call_view(bound, tool, previous.arguments, task=told.facts, full=full)
        return replace(seen, view=view, compared_id=last.id)

    def _asked_for(self, connection: Connection, approval: Approval) -> tuple[BoundCall | None, TaskSnapshot]:
        """Return the call an approval is for (None once it was erased) and the task facts about it."""
        record = find_decision(connection, approval.tenant, approval.decision_id)
        values = None if record is None else self._values_of(connection, record)
        if record is None or values is None:
            return None, NO_SNAPSHOT
        return self._bound_by(record, values), recorded_snapshot(values)

    def _code_for(self, approval: Approval, viewer: Principal, *, listed: bool) -> str:
        mine = viewer.subject == approval.requester and approval.by_requester
        return self.code_of(approval) if mine and not listed and approval.state is ApprovalState.PENDING else ""

    def code_of(self, approval: Approval) -> str:
        """Return the code that answers an approval."""
        return approval_code(
            self.keys.code_key,
            approval_id=approval.id,
            args_hash=approval.args_hash,
            tenant=approval.tenant,
            thread_id=approval.thread_id,
            requester=approval.requester,
            expire_us=approval.expire_us,
        )

    def find_approval(
        self, connection: Connection, tenant: str, approval_id: str, *, lock: bool = False
    ) -> Approval | None:
        """Return an approval of the tenant with its vote proofs checked; see store.approvals.find_approval."""
        found = approval_rows.find_approval(connection, tenant, approval_id, lock=lock)
        return None if found is None else self.votes.checked(found)

    def add_approval(self, connection: Connection, approval: Approval) -> Approval:
        """Insert an approval, note whom to tell of it, and return it as stored."""
        added = approval_rows.insert_approval(connection, approval)
        self.notices.asked(connection, added, self._answering(added))
        return added

    def change_approval(self, connection: Connection, approval: Approval, now_us: int) -> Approval:
        """Update a changed approval, note whom to tell of it, and return it as stored."""
        changed = approval_rows.change_approval(connection, approval, now_us)
        self.notices.changed(connection, changed, self._answering(changed), now_us)
        return changed

    def _answering(self, approval: Approval) -> frozenset[str]:
        """Return the groups whose members may answer an approval under the bundle that decides now."""
        named = (one for one in self.live.held.bundle.classes if one.name == approval.approval_class)
        return next((one.groups for one in named), frozenset())

    def current(self, connection: Connection, approval: Approval, who: Principal, now_us: int) -> Approval:
        """Return the approval in its current state; one that is past its time is recorded as EXPIRED first."""
        if not approval.due(now_us):
            return approval
        expired = replace(
            approval, state=advance(approval.state, ApprovalEvent.EXPIRE), closed_reason=str(ClosedReason.EXPIRED)
        )
        expired = self.change_approval(connection, expired, now_us)
        self.note(connection, Kind.APPROVAL_CLOSED, who, now_us, about(expired))
        return expired

    def note(
        self,
        connection: Connection,
        kind: Kind,
        who: Principal,
        now_us: int,
        body: Mapping[str, Any],
        *,
        values: Mapping[str, Any] | None = None,
        made: Mapping[str, tuple[bytes, str]] | None = None,
    ) -> Place:
        """Append a record to the audit log and return its place."""
        return self.audit.append(connection, Entry(kind, now_us, who, body, values or {}, made or {}))


def _unrecorded(error: SQLAlchemyError) -> Unavailable:
    told = f"the record could not be made ({type(error).__name__}), so nothing was decided"
    return Unavailable("STORE_UNAVAILABLE", told)


def about(approval: Approval) -> dict[str, Any]:
    """Return the fields of a record that describe an approval."""
    return {
        "approval_id": approval.id,
        "decision_id": approval.decision_id,
        "approval_class": approval.approval_class,
        "state": str(approval.state),
        "closed_reason": approval.closed_reason,
        "requester": approval.requester,
        "thread_id": approval.thread_id,
        "run_id": approval.run_id,
        "tool_call_id": approval.tool_call_id,
        "tool": approval.tool,
        ARGS_COMMITMENT: approval.args_commitment,
    }

"""Notes what people are to be told, in the transaction of the record that it is about.

A row holds ids and names, never what a call says: what a notice shows is read when it is sent, so that what was erased
until then is not told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping

import orjson
from phylactery_chassis.db.unit import unit_of
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import Approval, ApprovalState
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.model import ApprovalClass
from phylactery_riskgate.notices.config import Called, Notices, Sink
from phylactery_riskgate.notices.model import Event, NoticeRow, NoticeState
from phylactery_riskgate.store import locks
from phylactery_riskgate.store import notices as rows
from phylactery_riskgate.store.bundles import BundleHead
from phylactery_riskgate.store.decisions import DecisionRecord
from phylactery_riskgate.store.stops import FreezeRow

TOLD_LIFETIME_SECONDS = 86_400
"""How long an approval of another person lives where somebody is told of it and the bundle does not say."""
_HOUR_US = 3_600 * MICROSECONDS
_NOT_SCHEDULED = (str(Event.WAITING), str(Event.DECIDED))
_DECIDED = frozenset({ApprovalState.APPROVED, ApprovalState.REJECTED, ApprovalState.CANCELLED})


class _News:
    """The part of a unit of work that tells the listeners once its notices are durable, and not before."""

    def __init__(self, listeners: list[Callable[[], None]]) -> None:
        self._listeners = listeners

    def mark(self) -> None:
        """Buffer nothing."""

    def undo(self, mark: None) -> None:
        """Buffer nothing; to look in vain costs one query."""

    def flush(self, connection: Connection) -> None:
        """Buffer nothing."""

    def settle(self, *, committed: bool) -> None:
        """Tell the listeners."""
        if committed:
            for listener in self._listeners.copy():
                listener()


class Outbox:
    """What the use cases note, for the sinks that want it."""

    def __init__(self, notices: Notices, vault: Vault) -> None:
        """Take the sinks, and the vault that seals names."""
        self.notices, self._vault = notices, vault
        self.listeners: list[Callable[[], None]] = []
        """Called in the writer's thread once new notices are durable."""

    def lifetime_seconds(self, bundle: Bundle, wanted: ApprovalClass, tenant: str) -> int:
        """Return how long a new approval of a class waits: what the bundle says, or a day where somebody is told."""
        called = Called(tenant, wanted.name, by_requester=wanted.who == "requester", groups=wanted.groups)
        told = not called.by_requester and any(one.takes(Event.WAITING, called) for one in self.notices.sinks)
        return TOLD_LIFETIME_SECONDS if told and not bundle.approval_ttl_named else bundle.approval_ttl_seconds

    def asked(self, connection: Connection, approval: Approval, groups: frozenset[str]) -> None:
        """Note a new approval that members of the groups may answer: that it waits, its reminders, and its end."""
        called = _called(approval, groups)
        self._approval(connection, approval, called, Event.WAITING, approval.create_us)
        life_us = approval.expire_us - approval.create_us
        for sink in self._wanting(Event.REMINDER, called):
            for percent in sorted(set(sink.entry.reminders)):
                at_us = approval.create_us + life_us * percent // 100
                self._approval(connection, approval, called, Event.REMINDER, at_us, f"/{percent}", [sink])
        self._approval(connection, approval, called, Event.EXPIRED, approval.expire_us)

    def changed(self, connection: Connection, approval: Approval, groups: frozenset[str], now_us: int) -> None:
        """Note a change of an approval that people are told of; a call that ran is none."""
        called = _called(approval, groups)
        if approval.state in _DECIDED:
            # after what was noted before, even if the clock stood still or was set back meanwhile
            names = [one.name for one in self._wanting(Event.DECIDED, called)]
            after_us = max(now_us, rows.newest_due_us(connection, names, approval.id, _NOT_SCHEDULED) + 1)
            self._approval(connection, approval, called, Event.DECIDED, after_us, f"/{approval.state}", next_us=now_us)
        elif approval.state is ApprovalState.EXPIRED:  # for one that was asked before there was a sink
            self._approval(connection, approval, called, Event.EXPIRED, approval.expire_us)

    def frozen(self, connection: Connection, row: FreezeRow, now_us: int, *, lifted: bool = False) -> None:
        """Note a freeze, or that it was lifted."""
        event = Event.UNFROZEN if lifted else Event.FROZEN
        subject = row.name if str(row.scope) == "user" else ""
        detail = {"scope": str(row.scope), "name": row.name, "by_installation": row.by_installation}
        self._note(connection, event, Called(row.tenant), new_id("fz"), now_us, subject=subject, detail=detail)

    def activated(self, connection: Connection, head: BundleHead, tenant: str) -> None:
        """Note that another bundle decides from now on, for every tenant; ``tenant`` is that of who activated it."""
        once = f"bundle-{head.number}-{head.hash}"
        by = {"activated_by": head.activated_by, "activated_by_tenant": tenant}
        detail = {"revision": str(head.revision), "bundle_hash": head.hash, "source": head.source, **by}
        self._note(connection, Event.ACTIVATED, Called(""), once, head.activate_us, subject="", detail=detail)

    def limited(  # noqa: PLR0917 - its callers pass all of it
        self, connection: Connection, called: Called, subject: str, tool: str, limit: str, now_us: int
    ) -> None:
        """Note that a call would have passed a limit, once in an hour for each user and limit.

        ``limit`` is the name of a budget, or the reason why no approval could be requested.
        """
        of = (called.tenant, subject, limit, str(now_us // _HOUR_US))
        once = "limit-" + hashlib.sha256("\n".join(of).encode()).hexdigest()
        if not self._wanting(Event.LIMIT, called):
            return
        locks.take(connection, once)  # of two replicas one notes it, and neither waits for the other's commit
        detail = {"limit": limit, "tool": tool}
        self._note(connection, Event.LIMIT, called, once, now_us, subject=subject, detail=detail)

    def in_doubt(self, connection: Connection, record: DecisionRecord, execution_id: str, now_us: int) -> None:
        """Note an effect of which nobody knows whether it happened."""
        of = (record.tenant, record.subject, execution_id)
        once = "doubt-" + hashlib.sha256("\n".join(of).encode()).hexdigest()
        called = called_by(record)
        detail = {"tool": record.tool, "risk": record.risk, "stakes": record.stakes, "execution_id": execution_id}
        self._note(
            connection, Event.IN_DOUBT, called, once, now_us, subject=record.subject, about=execution_id, detail=detail
        )

    def opened(self, row: NoticeRow) -> Mapping[str, str]:
        """Return the names sealed in a notice. Raise DataLoss."""
        found: dict[str, str] = orjson.loads(self._vault.open(row.detail, _place(row.id))) if row.detail else {}
        return found

    def _approval(  # noqa: PLR0917 - its callers are here
        self,
        connection: Connection,
        approval: Approval,
        called: Called,
        event: Event,
        due_us: int,
        more: str = "",
        sinks: Iterable[Sink] | None = None,
        *,
        next_us: int = 0,
    ) -> None:
        once = f"{approval.id}/{event}{more}"
        self._note(
            connection,
            event,
            called,
            once,
            due_us,
            subject=approval.requester,
            about=approval.id,
            sinks=sinks,
            next_us=next_us,
        )

    def _note(
        self,
        connection: Connection,
        event: Event,
        called: Called,
        once: str,
        due_us: int,
        *,
        subject: str,
        about: str = "",
        detail: Mapping[str, object] | None = None,
        sinks: Iterable[Sink] | None = None,
        next_us: int = 0,
    ) -> None:
        """Insert one notice for each sink that wants it, all with one id."""
        wanting = list(self._wanting(event, called) if sinks is None else sinks)
        if not wanting:
            return
        notice_id = new_id("nt")
        sealed = self._vault.seal(orjson.dumps(detail), _place(notice_id)) if detail else b""
        made = [
            NoticeRow(
                id=notice_id,
                sink=sink.name,
                once=once,
                event=str(event),
                tenant=called.tenant,
                subject=subject,
                about=about,
                detail=sealed,
                state=str(NoticeState.OPEN),
                due_us=due_us,
                next_us=next_us or due_us,
                lease_us=0,
                claimed_by="",
                tries=0,
                error="",
                create_us=due_us,
                end_us=0,
            )
            for sink in wanting
        ]
        unit = unit_of(connection)
        if rows.insert_notices(connection, made) and unit is not None:
            unit.part(self, lambda: _News(self.listeners))

    def _wanting(self, event: Event, called: Called) -> list[Sink]:
        return [one for one in self.notices.sinks if one.takes(event, called)]


def called_by(record: DecisionRecord) -> Called:
    """Return what sinks choose notices about a decided call by."""
    return Called(record.tenant, stakes=_known(record.stakes), risk=record.risk)


def _called(approval: Approval, groups: frozenset[str]) -> Called:
    return Called(
        approval.tenant,
        approval.approval_class,
        by_requester=approval.by_requester,
        stakes=_known(approval.stakes),
        risk=approval.risk,
        groups=groups,
    )


def _known(stakes: str) -> str:
    return "" if stakes == "unspecified" else stakes


def _place(notice_id: str) -> str:
    return f"notice {notice_id}"

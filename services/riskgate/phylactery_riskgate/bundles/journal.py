"""Bundle journal: a submitted bundle moves a head or is refused, durably and on record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import DomainError, FailedPrecondition
from phylactery_chassis.telemetry.logs import get_logger
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.log import SYSTEM_PRINCIPAL, Kind
from phylactery_riskgate.bundles.acceptance import MAX_SENTENCE, Candidate, files_of, rollback
from phylactery_riskgate.decisions.context import DecisionContext, Refused
from phylactery_riskgate.domain.bundle.files import ENTITIES_FILE
from phylactery_riskgate.store import bundles as rows
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.audit_search import SYSTEM_TENANT
from phylactery_riskgate.store.bundles import BundleHead, Slot

ROLLBACK = "rollback"
"""The source of an activation that returns to an earlier bundle."""

_log = get_logger("policies")

_FOR_ALL = ("slot", "source", "bundle_revision", "bundle_hash", "signed_by", "previous_revision", "previous_hash")
"""Fields of an activation that auditors of all tenants see, besides the person who made it."""
MAX_STEP = 1_000_000_000
"""Maximum increase of the revision in one activation, so that a few steps cannot exhaust the numbers."""
MAX_FIRST = 1_000_000_000_000
"""The highest revision of a first bundle: room for a date and a time, written as one number."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A refused bundle: reason, time, and its revision (0 if it could not be read)."""

    message: str
    time_us: int
    revision: int


@dataclass(frozen=True, slots=True)
class Activated:
    """The result of an activation; ``place`` is None if the bundle was active already."""

    head: BundleHead
    place: Place | None


class BundleRecords:
    """Records of bundles, written inside a write; ``last_fault`` is the last bundle this process refused."""

    def __init__(self, core: DecisionContext) -> None:
        """Store the shared context."""
        self._core = core
        self.last_fault: Fault | None = None

    def move(
        self, connection: Connection, who: Principal, candidate: Candidate | None, slot: Slot, source: str
    ) -> Activated | Refused:
        """Activate a bundle in a slot, or clear it; the row lock serializes concurrent activations."""
        active = rows.find_head(connection, slot, lock=True)
        now_us = self._core.clock.now_us()
        if candidate is None:
            if not active.revision:
                return Activated(active, None)
            empty = BundleHead(0, "", activate_us=now_us, activated_by=who.subject, number=active.number + 1)
            return self._moved(connection, who, slot, active, empty)
        if candidate.hash == active.hash and candidate.signed_by in ("", active.signed_by):
            return Activated(active, None)
        renewed = candidate.hash == active.hash
        refusal = None if renewed or slot is not Slot.LIVE else _out_of_order(connection, candidate, active)
        if refusal is not None:
            return self.refuse(connection, who, source, refusal, candidate)
        rows.keep_bundle(connection, candidate.hash, candidate.revision, files_of(candidate.engine), now_us)
        head = _head_of(candidate, source, who, active, now_us)
        return self._moved(connection, who, slot, active, head, cases_skipped=candidate.cases_skipped)

    def go_back(
        self, connection: Connection, who: Principal, candidate: Candidate, seen: BundleHead
    ) -> Activated | Refused:
        """Reactivate an earlier bundle if the active one is still the one that was seen."""
        active = rows.find_head(connection, Slot.LIVE, lock=True)
        if candidate.hash == active.hash:
            return Activated(active, None)
        if active.number != seen.number:
            told = f"revision {active.revision} was activated meanwhile; look at it, and ask again"
            return self.refuse(connection, who, ROLLBACK, FailedPrecondition("BUNDLE_ROLLBACK", told), candidate)
        head = _head_of(candidate, ROLLBACK, who, active, self._core.clock.now_us())
        return self._moved(connection, who, Slot.LIVE, active, head)

    def refuse(
        self,
        connection: Connection,
        who: Principal,
        source: str,
        error: DomainError,
        candidate: Candidate | None = None,
    ) -> Refused:
        """Record that a bundle was refused, and why."""
        revision, bundle_hash = (candidate.revision, candidate.hash) if candidate else (0, "")
        now_us = self._core.clock.now_us()
        message = error.message[:MAX_SENTENCE]
        _log.error("bundle refused", source=source, reason=error.reason, problem=message, revision=revision)
        if error.metadata.get("file") == ENTITIES_FILE:
            # every tenant can read the fault, but not the names in that file
            message = f"{ENTITIES_FILE}:{error.metadata.get('line')}: is not valid; the log of the service says why"
        self.last_fault = Fault(message, now_us, revision)
        body = {
            "source": source,
            "reason": error.reason,
            "message": message,
            "bundle_revision": revision,
            "bundle_hash": bundle_hash,
        }
        self._core.note(connection, Kind.BUNDLE_REFUSED, who, now_us, body)
        return Refused(error)

    def _moved(
        self,
        connection: Connection,
        who: Principal,
        slot: Slot,
        before: BundleHead,
        head: BundleHead,
        *,
        cases_skipped: bool = False,
    ) -> Activated:
        rows.move_head(connection, slot, head, who.tenant)
        body: dict[str, Any] = {
            "slot": str(slot),
            "source": head.source,
            "bundle_revision": head.revision,
            "bundle_hash": head.hash,
            "signed_by": head.signed_by,
            "previous_revision": before.revision,
            "previous_hash": before.hash,
            **({"cases_skipped": True} if cases_skipped else {}),
        }
        place = self._core.note(connection, Kind.BUNDLE_ACTIVATED, who, head.activate_us, body)
        if slot is Slot.LIVE and who.tenant != SYSTEM_TENANT:
            self._tell_all(connection, who, body, place, head.activate_us)
        if slot is Slot.LIVE and before.revision:  # the first replaces nothing
            self._core.notices.activated(connection, head, who.tenant)
        return Activated(head, place)

    def _tell_all(
        self, connection: Connection, who: Principal, body: Mapping[str, Any], place: Place, now_us: int
    ) -> None:
        """Record for the auditors of every tenant that the policies changed, and who changed them."""
        told = {name: body[name] for name in _FOR_ALL} | {"record": {"log": place.log, "index": place.index}}
        told["activated_by"] = {"subject": who.subject, "tenant": who.tenant}
        self._core.note(connection, Kind.POLICIES_CHANGED, SYSTEM_PRINCIPAL, now_us, told)


def _head_of(candidate: Candidate, source: str, who: Principal, active: BundleHead, now_us: int) -> BundleHead:
    return BundleHead(
        candidate.revision,
        candidate.hash,
        source,
        candidate.signed_by,
        now_us,
        who.subject,
        active.number + 1,
    )


def _out_of_order(connection: Connection, candidate: Candidate, active: BundleHead) -> FailedPrecondition | None:
    """Return why a bundle may not follow the active one, or None if it may."""
    if candidate.revision <= active.revision:
        return rollback(candidate, active)
    known = rows.decided_before(connection, candidate.revision)
    if known:
        told = (
            f"revision {candidate.revision} was active here before and was rolled back; raise the revision, or "
            f"activate it with `riskgate policy rollback --to {known}`"
        )
        given = {"active": str(active.revision), "given": str(candidate.revision)}
        return FailedPrecondition("BUNDLE_ROLLBACK", told, metadata=given)
    highest = active.revision + MAX_STEP if active.revision else MAX_FIRST
    if candidate.revision > highest:
        told = f"revision {candidate.revision} is too high: after {active.revision} the next is {highest} at most"
        given = {"active": str(active.revision), "highest": str(highest)}
        return FailedPrecondition("BUNDLE_REVISION_TOO_HIGH", told, metadata=given)
    return None

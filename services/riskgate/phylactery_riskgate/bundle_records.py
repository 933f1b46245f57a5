"""What becomes of a bundle that is handed in, made durable with its record: it moves a head, or it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phylactery_chassis.errors import DomainError
from phylactery_chassis.identity import Principal
from phylactery_chassis.logs import get_logger
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit import ITSELF, Kind
from phylactery_riskgate.bundle_acceptance import MAX_SENTENCE, Candidate, files_of, rollback
from phylactery_riskgate.core import Core, Refused
from phylactery_riskgate.store import bundles as rows
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.audit_search import NOBODYS
from phylactery_riskgate.store.bundles import BundleHead, Slot

_log = get_logger("policies")

_FOR_ALL = ("slot", "bundle_revision", "bundle_hash", "previous_revision", "previous_hash")
"""What every auditor is told of a bundle that a person of some tenant activated."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A bundle that was refused: why, when, and what it called itself (0 where it could not be read)."""

    message: str
    time_us: int
    revision: int


@dataclass(frozen=True, slots=True)
class Activated:
    """What an activation made of a slot; ``place`` is None where the bundle was active already."""

    head: BundleHead
    place: Place | None


class BundleRecords:
    """Its methods run inside a write; ``last_fault`` is the bundle that this process refused last."""

    def __init__(self, core: Core) -> None:
        """Takes what records."""
        self._core = core
        self.last_fault: Fault | None = None

    def move(
        self, connection: Connection, who: Principal, candidate: Candidate | None, slot: Slot, source: str
    ) -> Activated | Refused:
        """Lets a bundle be the active one of a slot, or none; the row is locked, so of two at once one is later."""
        active = rows.find_head(connection, slot, lock=True)
        now_us = self._core.clock.now_us()
        if candidate is None:
            if not active.revision:
                return Activated(active, None)
            empty = BundleHead(0, "", activate_us=now_us, activated_by=who.subject)
            return self._moved(connection, who, slot, active, empty)
        if candidate.hash == active.hash and candidate.signed_by in ("", active.signed_by):
            return Activated(active, None)
        renewed = candidate.hash == active.hash
        if slot is Slot.LIVE and not renewed and candidate.revision <= active.revision:
            refusal = rollback(candidate, active)
            return self.refuse(connection, who, source, refusal, candidate)
        rows.keep_bundle(connection, candidate.hash, candidate.revision, files_of(candidate.engine), now_us)
        head = BundleHead(candidate.revision, candidate.hash, source, candidate.signed_by, now_us, who.subject)
        return self._moved(connection, who, slot, active, head)

    def refuse(
        self,
        connection: Connection,
        who: Principal,
        source: str,
        error: DomainError,
        candidate: Candidate | None = None,
    ) -> Refused:
        """Records that a bundle was refused, and why."""
        revision, bundle_hash = (candidate.revision, candidate.hash) if candidate else (0, "")
        now_us = self._core.clock.now_us()
        message = error.message[:MAX_SENTENCE]
        self.last_fault = Fault(message, now_us, revision)
        _log.error("bundle refused", source=source, reason=error.reason, problem=message, revision=revision)
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
        self, connection: Connection, who: Principal, slot: Slot, before: BundleHead, head: BundleHead
    ) -> Activated:
        rows.move_head(connection, slot, head)
        body = {
            "slot": str(slot),
            "source": head.source,
            "bundle_revision": head.revision,
            "bundle_hash": head.hash,
            "signed_by": head.signed_by,
            "previous_revision": before.revision,
            "previous_hash": before.hash,
        }
        place = self._core.note(connection, Kind.BUNDLE_ACTIVATED, who, head.activate_us, body)
        if slot is Slot.LIVE and who.tenant != NOBODYS:
            self._tell_all(connection, body, place, head.activate_us)
        return Activated(head, place)

    def _tell_all(self, connection: Connection, body: Mapping[str, Any], place: Place, now_us: int) -> None:
        """Records for the auditors of every tenant that other policies decide: who did it, theirs alone may read."""
        told = {name: body[name] for name in _FOR_ALL} | {"record": {"log": place.log, "index": place.index}}
        self._core.note(connection, Kind.POLICIES_CHANGED, ITSELF, now_us, told)

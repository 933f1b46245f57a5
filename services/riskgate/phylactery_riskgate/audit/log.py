"""The audit log: decisions, answers, redemptions and outcomes, appended in the transaction that makes them true.

A record is hashed whole, in its RFC 8785 form, into a Merkle leaf. It does not contain argument values: the leaf holds
salted commitments, and the values are sealed outside the log, where they can be erased while the log still verifies.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.auth.jws import decode, encode
from phylactery_chassis.db.unit import unit_of
from phylactery_chassis.errors import DataLoss, DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.checkpoint import Checkpoint, sign_note
from phylactery_riskgate.audit.heads import (
    NOTHING,
    HeadStore,
    KeptHead,
    check_all,
    missing,
    not_kept,
    require_growth,
)
from phylactery_riskgate.audit.merkle import Frontier, leaf_hash
from phylactery_riskgate.audit.sealing import Vault, commitment, committed
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.store import audit as rows
from phylactery_riskgate.store.audit_append import PendingEntries
from phylactery_riskgate.store.audit_search import find_entry

RECORD_VERSION = 2
"""Version of the record format; version 1 held the plain hashes of whole arguments (see audit.commitments)."""
_NONCE_BYTES = 16
"""Size of the nonce in every record, so that its leaf hash in other tenants' proofs confirms no guess about it."""

SYSTEM_PRINCIPAL = Principal("riskgate", "", frozenset())
"""The principal of records that belong to no tenant."""

_log = get_logger("audit")

Signer = Callable[[], Ed25519PrivateKey]


class LogError(RuntimeError):
    """The log cannot be continued; the message says why and what to do."""


class Kind(StrEnum):
    """The kind of a record."""

    DECISION = "decision"
    ACCESS_EVALUATED = "access_evaluated"
    EVALUATE_REFUSED = "evaluate_refused"
    PERMIT_RENEWED = "permit_renewed"
    APPROVAL_ANSWERED = "approval_answered"
    APPROVAL_REFUSED = "approval_refused"
    APPROVAL_CLOSED = "approval_closed"
    REDEEMED = "redeemed"
    REDEEM_REFUSED = "redeem_refused"
    OUTCOME = "outcome"
    VALUES_ERASED = "values_erased"
    BUNDLE_ACTIVATED = "bundle_activated"
    BUNDLE_REFUSED = "bundle_refused"
    POLICIES_CHANGED = "policies_changed"
    SHADOW_DIFFERENCE = "shadow_difference"
    KEY_CHANGED = "key_changed"
    FROZEN = "frozen"
    UNFROZEN = "unfrozen"
    DECISION_REVOKED = "decision_revoked"
    UNDO_FAILED = "undo_failed"
    UNDO_CLEARED = "undo_cleared"
    TASK_BEGUN = "task_begun"
    TASK_ENDED = "task_ended"
    HEADS_ADOPTED = "heads_adopted"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record to append: the event, its principal, and the values it is about, by JSON Pointer.

    ``made`` are commitments made in advance, each a salt and its commitment; every other value gets its own.
    """

    kind: Kind
    time_us: int
    who: Principal
    body: Mapping[str, Any]
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    made: Mapping[str, tuple[bytes, str]] = field(default_factory=dict, repr=False)


class AuditLog:
    """One named log. Its methods run inside the caller's transaction, so a record commits with what it records."""

    def __init__(
        self,
        name: str,
        *,
        vault: Vault,
        data_key_id: str,
        signer: Signer,
        heads: HeadStore | None = None,
        sign_every: int = 64,
    ) -> None:
        """Set up a log by its name (its origin), the source of the current signing key, and the signing interval.

        heads is the store of signed heads outside the database; without it the log opens values but cannot be appended
        to.
        """
        self.name = name
        self._heads = heads
        self._vault, self._data_key_id = vault, data_key_id
        self._signer, self._sign_every = signer, sign_every
        self._known: rows.Head | None = None
        """This process's last known head of the log, cached for its writer; the database is authoritative."""
        self._extends: KeptHead | None = None
        """The kept head that _known was proved to extend; holds as long as _known does."""
        self._unkept: KeptHead | None = None
        """A head that was signed and committed but could not be kept yet: it is kept before another is signed."""
        self._first = False
        self.problem = ""
        """Why nothing can be appended, or empty; cleared when database and kept heads agree again."""

    def open(self, connection: Connection, *, joining: bool = False) -> None:
        """Create or continue the log. Raise LogError if a log here has another data key.

        Under another key, values that a replica's log sealed cannot be opened, and a call a person rejected is not
        recognized. Raise BusyError while another replica creates its log, and HeadsDisagree if a log of the database
        differs from its kept head, or this one has entries and none was ever kept: that cannot be told from a log whose
        kept heads were all removed, with what says that there were any. For a ``joining`` replica, whose log begins
        here, it is no first start: it would vouch for votes that others noted and it never saw.
        """
        store = self._store
        head = rows.find_head(connection, self.name, lock=True)
        if head is None:
            rows.lock_names(connection)
            # again: between the first look and the lock, another process may have created it and committed
            head = rows.find_head(connection, self.name, lock=True)
        foreign = rows.find_foreign_key(connection, self._data_key_id)
        if foreign is not None:
            name, key_id = foreign
            raise LogError(
                f"the log '{name}' of this database was written with data key {key_id}, but the keys folder contains "
                f"{self._data_key_id}; all RiskGate processes of a database need the same data key: restore the keys "
                f"folder of this database, or use a separate database"
            )
        if head is None:
            rows.create_log(connection, self.name, self._data_key_id)
        issuer = self.name.partition("/")[0]
        self._first = not store.begun and not (joining and head is None)
        check_all(connection, store, issuer)
        self._begin_file(connection, Frontier() if head is None else head.frontier)

    @property
    def first_start(self) -> bool:
        """Return True if no version that proves votes has served here before."""
        return self._first

    def opened(self) -> None:
        """End the adoption of votes, once it is on record."""
        self._store.begin()

    def _begin_file(self, connection: Connection, frontier: Frontier) -> None:
        """Create the log's file of kept heads if there is none, and bring it up to date."""
        last = self._store.last(self.name)
        if last is None and frontier.size:
            raise missing(self._store, self.name)
        if last is None or last.size < frontier.size:
            self._store.keep(self.name, KeptHead.of(frontier, self._signed(connection, frontier)))

    def append(self, connection: Connection, entry: Entry) -> rows.Place:
        """Append a record and return its place; sign the head every ``sign_every`` entries.

        The record is written at the end of the transaction.
        """
        pending = self._pending(connection)
        place = rows.Place(self.name, pending.frontier.size)
        record: dict[str, Any] = {
            "version": RECORD_VERSION,
            "log": self.name,
            "index": place.index,
            "time_us": entry.time_us,
            "kind": str(entry.kind),
            "tenant": entry.who.tenant,
            "subject": entry.who.subject,
            "actor": entry.who.actor,
            "roles": sorted(entry.who.roles),
            "nonce": encode(secrets.token_bytes(_NONCE_BYTES)),
            **entry.body,
        }
        if entry.values:
            made = {pointer: entry.made.get(pointer) or committed(value) for pointer, value in entry.values.items()}
            record["values"] = {pointer: text for pointer, (_, text) in made.items()}
            plain = _plain({pointer: encode(salt) for pointer, (salt, _) in made.items()}, dict(entry.values))
            pending.keep_values(entry.who.tenant, place.index, self._vault.seal(plain, _written(place)))
        data = canonical_bytes(record)
        time_us = max(entry.time_us, pending.last_us)
        label = rows.Label(entry.who.tenant, entry.who.subject, str(entry.kind), time_us, about_decision(record))
        pending.add(rows.StoredEntry(place.index, leaf_hash(data), data), label)
        if pending.unsigned >= self._sign_every:
            pending.sign_at_end(entry.time_us)
        return place

    def values(self, connection: Connection, tenant: str, place: rows.Place) -> dict[str, Any] | None:
        """Return the values of an entry by JSON Pointer, or None once erased. Raise DataLoss if they were altered."""
        opened = self._opened(connection, tenant, place)
        return None if opened is None else opened["values"]

    def salted_values(
        self, connection: Connection, tenant: str, place: rows.Place
    ) -> dict[str, tuple[bytes, Any]] | None:
        """Return the values of an entry, each with the salt of its commitment, or None once erased. Raise DataLoss."""
        opened = self._opened(connection, tenant, place)
        if opened is None:
            return None
        return {pointer: (decode(opened["salts"][pointer]), value) for pointer, value in opened["values"].items()}

    def commitments(self, connection: Connection, tenant: str, place: rows.Place) -> dict[str, str]:
        """Recompute the commitments from the stored values: a difference from the record means alteration."""
        opened = self._opened(connection, tenant, place) or {"values": {}, "salts": {}}
        return {
            pointer: commitment(decode(opened["salts"][pointer]), value) for pointer, value in opened["values"].items()
        }

    def entry(self, connection: Connection, tenant: str, place: rows.Place) -> rows.StoredEntry | None:
        """Return an entry of a tenant, including those this transaction appended, or None."""
        unit = unit_of(connection)
        pending = unit.find(self) if unit is not None and place.log == self.name else None
        found: rows.StoredEntry | None = None if pending is None else pending.find_entry(tenant, place.index)
        if found is not None:
            return found
        written = find_entry(connection, tenant, place)
        return None if written is None else written.stored

    def sign_head(self, connection: Connection, now_us: int) -> bool:
        """Sign the head if entries were added since the last one, or it is not kept; return True if it was signed."""
        pending = self._pending(connection)
        if not pending.unsigned and (self._store.last(self.name) or NOTHING).size >= pending.frontier.size:
            return False
        pending.sign_at_end(now_us)
        return True

    def sign_other(self, connection: Connection, name: str, frontier: Frontier) -> KeptHead:
        """Sign the head of a log that another process writes or wrote; ``keep`` it after the commit.

        Raise NotFound AUDIT_NOT_FOUND if no head of it is kept here, and HeadsDisagree.
        """
        last = self._store.last(name)
        if last is None and frontier.size:
            raise not_kept(self._store, name)
        require_growth(connection, self._store, name, last or NOTHING, frontier)
        return KeptHead.of(frontier, self._note(name, frontier))

    def kept(self, name: str) -> KeptHead:
        """Return the last head kept of a log, or the empty head."""
        return self._store.last(name) or NOTHING

    def keep(self, name: str, head: KeptHead) -> bool:
        """Keep a signed head outside the database, before it is published; return False if a larger one was kept."""
        return self._store.keep(name, head)

    def keep_signed(self) -> None:
        """Keep the signed head of this log that could not be kept yet. Raise StoreFull, Unavailable, HeadsDisagree."""
        signed = self._unkept
        if signed is not None:
            self._store.keep(self.name, signed)

    @property
    def _store(self) -> HeadStore:
        if self._heads is None:
            raise LogError(f"the log '{self.name}' was not opened to be written")
        return self._heads

    def _signed(self, connection: Connection, frontier: Frontier) -> str:
        """Return the signed note of a head that extends the last one. Raise HeadsDisagree, and as keep does."""
        self._prove(connection, frontier)
        return self._note(self.name, frontier)

    def _note(self, name: str, frontier: Frontier) -> str:
        return sign_note(Checkpoint(name, frontier.size, frontier.root()).text, name, self._signer())

    def _prove(self, connection: Connection, frontier: Frontier) -> None:
        """Raise HeadsDisagree unless a tree extends the last kept head of this log; set problem accordingly."""
        try:
            if self._unkept is not None:
                self._store.keep(self.name, self._unkept)
                self._unkept = None
            last = self._store.last(self.name)
            if last is None and frontier.size:
                raise missing(self._store, self.name)
            last = last or NOTHING
            if last != self._extends:
                require_growth(connection, self._store, self.name, last, frontier)
                self._extends = last
        except DataLoss as error:
            if error.message != self.problem:
                _log.error("decisions are stopped: the log does not match its signed heads", problem=error.message)
            self.problem = error.message
            raise
        self.problem = ""

    def _pending(self, connection: Connection) -> PendingEntries:
        """Return the entries that the transaction appends. Raise LogError outside of a write."""
        unit = unit_of(connection)
        if unit is None:
            raise LogError(f"the log '{self.name}' takes entries within a write alone")
        return unit.part(self, lambda: self._begun(connection))

    def _begun(self, connection: Connection) -> PendingEntries:
        # if another process moved the head, wait for the lock: retries without it could lose every race
        head = self._known or rows.find_head(connection, self.name, lock=True)
        if head is None:
            raise LogError(f"the log '{self.name}' was not opened")
        if self._known is None:
            self._extends = None
            self._prove(connection, head.frontier)
        return PendingEntries(self.name, head, sign=self._signed, settled=self._settle)

    def _settle(self, head: rows.Head | None, note: str) -> None:
        """Cache the new head, and keep what was signed, now that its entries are committed."""
        self._known = head
        if head is None or not note:
            return
        reach("riskgate.head")
        signed = KeptHead.of(head.frontier, note)
        try:
            kept = self._store.keep(self.name, signed)
        except DomainError as error:
            # committed entries stay; this head is kept before the next is signed or published
            self._unkept = signed
            _log.error("a signed head could not be stored outside the database", log=self.name, reason=error.message)
        else:
            self._extends = signed if kept else None

    def _opened(self, connection: Connection, tenant: str, place: rows.Place) -> dict[str, Any] | None:
        unit = unit_of(connection)
        pending = unit.find(self) if unit is not None and place.log == self.name else None
        sealed = None if pending is None else pending.find_values(tenant, place.index)
        sealed = sealed or rows.find_values(connection, tenant, place.log, place.index)
        if sealed is None:
            return None
        opened: dict[str, Any] = json.loads(self._vault.open(sealed, _written(place)))
        return opened


def about_decision(record: Mapping[str, Any]) -> str:
    """Return the decision, or the answer of EvaluateAccess, that a record is about, or an empty string."""
    if record.get("kind") == Kind.SHADOW_DIFFERENCE:  # what a bundle under trial would say
        return ""
    return str(record.get("decision_id") or record.get("evaluation_id") or "")


def _plain(salts: dict[str, str], values: dict[str, Any]) -> bytes:
    """Serialize what is sealed. Commitments exist for all values, so they are JSON that every encoder writes alike."""
    opened = {"salts": salts, "values": values}
    try:
        return orjson.dumps(opened)
    except TypeError:  # nested too deep for the fast encoder
        return json.dumps(opened).encode()


def _written(place: rows.Place) -> str:
    """Return the place in the form that sealed values are bound to."""
    return f"{place.log}/{place.index}"


def pointer_of(name: str) -> str:
    """Return the JSON Pointer (RFC 6901) of a top-level name."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def open_log(
    connection: Connection,
    audit: AuditLog,
    adopt_votes: Callable[[Connection], int],
    *,
    now_us: int,
    joining: bool = False,
) -> None:
    """Open a log within a write; call AuditLog.opened after the commit. Raise as AuditLog.open does.

    Votes of earlier versions, without proofs, are adopted on record; adopt_votes returns their number.
    """
    audit.open(connection, joining=joining)
    votes = adopt_votes(connection) if audit.first_start else 0
    if not votes:
        return
    body = adoption_body({}) | {"votes": votes}
    _log.warning("votes had no proofs before: those that the log tells of are adopted", **body)
    audit.append(connection, Entry(Kind.HEADS_ADOPTED, now_us, SYSTEM_PRINCIPAL, body))


def adoption_body(heads: Mapping[str, KeptHead]) -> dict[str, Any]:
    """Return the fields of a record about adopted logs."""
    logs = {name: {"size": head.size, "root_hash": head.root.hex()} for name, head in heads.items()}
    return {"logs": logs, "votes": 0}

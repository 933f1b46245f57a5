"""Read side of AuditService: entries of a tenant, signed heads and proofs. Changes no record."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import STORE_FAILED, NotFound, OutOfRange, ResourceExhausted, Unavailable
from phylactery_chassis.rpc.paging import decode_token, encode_token
from phylactery_chassis.telemetry.logs import get_logger
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_riskgate.approvals.model import Approval
from phylactery_riskgate.audit.checkpoint import Checkpoint, Verifier
from phylactery_riskgate.audit.entries import EntryFilter, ReadEntry, SeenEntry, SignedHead, shown_values
from phylactery_riskgate.audit.export import exported, values_of
from phylactery_riskgate.audit.heads import KeptHead
from phylactery_riskgate.audit.log import Kind, about_decision
from phylactery_riskgate.audit.proofs import Tree
from phylactery_riskgate.audit.receipts import ProvenEntry, receipt_text
from phylactery_riskgate.audit.requests import (
    DEFAULT_PAGE,
    CheckpointInput,
    ConsistencyInput,
    ExportInput,
    FilterInput,
    InclusionInput,
    ListEntriesInput,
    ReceiptInput,
    TailInput,
)
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.questions import approval_not_found
from phylactery_riskgate.privacy.erasure import Erasure
from phylactery_riskgate.privacy.retention_store import is_emptied
from phylactery_riskgate.store import audit as log_rows
from phylactery_riskgate.store import audit_search as rows
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.decisions import CallKey, DecisionRecord, find_call, find_decision, revoked_among
from phylactery_riskgate.tasks.service import Tasks

MAX_TAILS = 16
"""Maximum number of tails per tenant and process, so that one tenant cannot exclude another's auditors."""
_POLL_SECONDS = 0.1
_CHUNK = 500
"""Entries read per batch, which bounds the memory that a slow follower holds."""
_CHUNK_WITH_VALUES = 16
"""Entries read per batch with values, which may be a megabyte each."""
_QUIET = 5_000
"""Number of skipped entries after which a follower receives the positions of the tail."""

Positions = dict[str, int]
Seen = Callable[..., "SeenEntry"]
_log = get_logger("audit")


class Tails:
    """All followers of this process. One poll of the log sizes serves all of them."""

    def __init__(self, core: DecisionContext, seen: Seen) -> None:
        self._core, self._seen = core, seen
        self._grown = asyncio.Condition()
        self._sizes: Positions = {}
        self._followers: Counter[str] = Counter()
        self._watch: asyncio.Task[None] | None = None
        self._ending = False

    async def follow(self, who: Principal, asked: TailInput) -> AsyncGenerator[SeenEntry | Positions]:
        """Yield positions first, then entries as they come, and positions after many skipped entries.

        Ends, after final positions, when the server drains. Raise ResourceExhausted TOO_MANY_TAILS.
        """
        who.require(Role.AUDITOR)
        wanted = EntryFilter(who.tenant, asked.filter)
        with self._following(who.tenant):
            sizes = await self._look()
            at = {one.log: one.next_index for one in asked.positions}
            if not asked.positions:
                at = dict.fromkeys(sizes, 0) if asked.from_beginning else dict(sizes)
            yield dict(at)
            told = sum(at.values())
            while True:
                sizes = self._sizes
                behind = [log for log, size in sizes.items() if at.get(log, 0) < size]
                if behind:
                    async for entry in self._chunk(wanted, at, behind, sizes, values=asked.include_values):
                        yield entry
                        told = sum(at.values())
                    if sum(at.values()) - told >= _QUIET:
                        told = sum(at.values())
                        yield dict(at)
                elif self._ending:
                    yield dict(at)
                    return
                else:
                    await self._growth(sizes)

    async def end(self) -> None:
        """End every follower after the entries that exist now."""
        if self._followers:
            with contextlib.suppress(*STORE_FAILED):  # on failure they end with the sizes known so far
                await self._look()
        self._ending = True
        async with self._grown:
            self._grown.notify_all()

    async def _chunk(
        self, wanted: EntryFilter, at: Positions, behind: list[str], sizes: Positions, *, values: bool
    ) -> AsyncIterator[SeenEntry]:
        """Yield the next entries of the logs, merged by time, and advance the positions."""
        step = max(1, (_CHUNK_WITH_VALUES if values else _CHUNK) // len(behind))
        ends = {log: min(sizes[log], at.get(log, 0) + step) for log in behind}

        def read(connection: Any) -> list[SeenEntry]:
            found = [
                rows.following(connection, wanted.tenant, log, at.get(log, 0), end)
                for log, end in ends.items()
                if wanted.bounds.log in ("", log)
            ]
            merged = heapq.merge(*found, key=lambda one: one.position)
            entries = (wanted.read(one) for one in merged)
            seen = [self._seen(connection, entry, values=values) for entry in entries if entry is not None]
            return _with_revocations(connection, wanted.tenant, seen)

        for seen in await self._core.database.read(read):
            place = seen.entry.found.place
            at[place.log] = place.index + 1
            yield seen
        at.update(ends)

    @contextlib.contextmanager
    def _following(self, tenant: str) -> Iterator[None]:
        if self._followers[tenant] >= MAX_TAILS:
            raise ResourceExhausted(
                "TOO_MANY_TAILS",
                f"{MAX_TAILS} tails of this tenant are open at this server already; end one, or ask another replica",
                metadata={"limit": str(MAX_TAILS)},
            )
        self._followers[tenant] += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._keep_looking())
        try:
            yield
        finally:
            self._followers[tenant] -= 1
            if not self._followers[tenant]:
                del self._followers[tenant]
            if not self._followers and self._watch is not None:
                self._watch.cancel()
                self._watch = None

    async def _look(self) -> Positions:
        """Read the sizes of the logs, and wake the waiters if one has grown."""
        sizes = {log.name: log.size for log in await self._core.database.read(rows.log_sizes)}
        if sizes != self._sizes:
            self._sizes = sizes
            async with self._grown:
                self._grown.notify_all()
        return sizes

    async def _keep_looking(self) -> None:
        """Poll the logs while there are followers; retry if the store fails."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                await self._look()
            except STORE_FAILED as error:
                _log.warning("following the logs failed; will retry", reason=error.reason)

    async def _growth(self, known: Positions) -> None:
        """Wait until a log has grown or the server drains."""
        async with self._grown:
            await self._grown.wait_for(lambda: self._ending or self._sizes is not known)


_SCAN = 10_000
"""Entries one page scans: about 100 ms, then the caller gets what was found and requests the next page."""
_TRIES = 3
"""How often the head of another process's log is signed again because it grew in the meantime."""
_PAGE_BYTES = 3 * 1024 * 1024
_MOST_OF_RECEIPT, _MOST_REFUSALS = 100, 20
"""Maximum entries of a receipt: what happened to the decision, and refusals, which can be repeated."""


@dataclass(frozen=True, slots=True)
class LogView:
    """One log, and the keys whose signatures on its heads are valid."""

    size: rows.LogSize
    vkeys: tuple[str, ...]
    own: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof: its subject, its hashes, and the signed heads at its sizes, empty if unsigned."""

    log: str
    first: int
    size: int
    hashes: tuple[bytes, ...]
    leaf: bytes = b""
    first_note: str = ""
    note: str = ""


class AuditReader:
    """The use cases of AuditService. ``tails`` follows the logs, ``erasure`` erases values."""

    def __init__(self, core: DecisionContext, tasks: Tasks) -> None:
        self._core = core
        self.tails = Tails(core, self._seen)
        self.erasure = Erasure(core, tasks)

    async def logs(self, who: Principal) -> list[LogView]:
        """Return every log."""
        who.require(Role.AUDITOR)
        ring = self._core.keys.ring
        sizes = await self._core.database.read(rows.log_sizes)
        return [
            LogView(
                log,
                tuple(Verifier(log.name, key.raw).text for key in ring.public if key.raw in ring.verifying.values()),
                log.name == self._core.audit.name,
            )
            for log in sizes
        ]

    async def list_page(self, who: Principal, asked: ListEntriesInput) -> tuple[list[SeenEntry], str]:
        """Return a page of entries as the auditor sees them, and the next page's token.

        Raise InvalidArgument for an invalid token.
        """
        who.require(Role.AUDITOR)
        after: rows.Position | None = None
        if asked.page_token:
            time_us, log, index = decode_token(asked.page_token, int, str, int)
            after = int(time_us), str(log), int(index)
        return await self._core.database.read(lambda connection: self._page(connection, who, asked, after))

    async def checkpoint(self, who: Principal, asked: CheckpointInput) -> SignedHead:
        """Return a signed head; the current one is signed now if necessary. Raise NotFound AUDIT_NOT_FOUND."""
        who.require(Role.AUDITOR)
        log = asked.log or self._core.audit.name
        if asked.size == 0:
            return await self._current(log)
        note = await self._core.database.read(lambda connection: rows.find_checkpoint(connection, log, asked.size))
        if not note:
            raise _not_found(f"no head of the log '{log}' was signed at size {asked.size}", log)
        return _read_note(note)

    async def export(self, who: Principal, asked: ExportInput) -> AsyncGenerator[bytes]:
        """Yield an export of one log, up to its current head, which is signed now if necessary.

        Raise NotFound AUDIT_NOT_FOUND.
        """
        who.require(Role.AUDITOR)
        head = await self._current(asked.log or self._core.audit.name)
        async for part in exported(self._core, who, asked, head, self._seen):
            yield part

    async def inclusion(self, who: Principal, asked: InclusionInput) -> Proof:
        """Prove that one of the tenant's entries is in a log.

        Raise NotFound AUDIT_NOT_FOUND for a missing entry and for another tenant's, and OutOfRange.
        """
        who.require(Role.AUDITOR)
        place = Place(asked.log or self._core.audit.name, asked.index)
        size = asked.tree_size or (await self._current(place.log)).size
        await self._keep_subtrees(place.log)

        def prove(connection: Connection) -> Proof:
            _check_size(connection, place.log, size)
            if rows.find_entry(connection, who.tenant, place) is None and not is_emptied(connection, place):
                raise _not_found(f"the log '{place.log}' has no entry {place.index} of this tenant", place.log)
            if place.index >= size:
                raise _out_of_range(f"entry {place.index} is not in the first {size}; ask for a larger tree", size)
            leaf, path = Tree(connection, place.log).inclusion(place.index, size)
            note = rows.find_checkpoint(connection, place.log, size)
            return Proof(place.log, place.index, size, tuple(path), leaf, note=note)

        return await self._core.database.read(prove)

    async def consistency(self, who: Principal, asked: ConsistencyInput) -> Proof:
        """Prove that a log of one size is a prefix of the log of another size. Raise NotFound and OutOfRange."""
        who.require(Role.AUDITOR)
        log, first = asked.log or self._core.audit.name, asked.first_size
        second = asked.second_size or (await self._current(log)).size
        await self._keep_subtrees(log)

        def prove(connection: Connection) -> Proof:
            size = _check_size(connection, log, second)
            if first > second:
                raise _out_of_range(f"first_size {first} is beyond second_size {second}", size)
            path = Tree(connection, log).consistency(first, second)
            notes = [rows.find_checkpoint(connection, log, at) for at in (first, second)]
            return Proof(log, first, second, tuple(path), first_note=notes[0], note=notes[1])

        return await self._core.database.read(prove)

    async def receipt(self, who: Principal, asked: ReceiptInput) -> str:
        """Return the receipt of a decision, or of one entry: its records, proved to be in the current signed heads.

        Raise PermissionDenied ROLE_REQUIRED, NotFound DECISION_NOT_FOUND, APPROVAL_NOT_FOUND and AUDIT_NOT_FOUND, also
        for another caller's unless an auditor asks, and Unavailable.
        """
        if Role.AUDITOR not in who.roles:
            who.require(Role.CALLER)
        now_us = self._core.clock.now_us()

        def expire(connection: Connection) -> None:
            for one in self._approvals(connection, who, self._decisions(connection, who, asked)):
                self._core.current(connection, one, who, now_us)

        decided = await self._core.database.read(lambda connection: self._decisions(connection, who, asked))
        approvals = await self._core.database.read(lambda connection: self._approvals(connection, who, decided))
        if any(one.due(now_us) for one in approvals):
            await self._core.write(expire)  # an approval that is over says so
        of, entries, left_out = await self._core.database.read(
            lambda connection: self._of_receipt(connection, who, asked, decided)
        )
        heads = {log: await self._current(log) for log in dict.fromkeys(one.found.log for one in entries)}
        for log in heads:
            await self._keep_subtrees(log)
        proven = await self._core.database.read(
            lambda connection: [self._proven(connection, who, asked, one, heads[one.found.log]) for one in entries]
        )
        return receipt_text(of, proven, [head.note for head in heads.values()], left_out)

    async def keep_subtrees(self) -> None:
        """Compute and store the subtree heads that proofs read, for every log."""
        for log in await self._core.database.read(rows.log_sizes):
            await self._keep_subtrees(log.name)

    async def _keep_subtrees(self, log: str) -> None:
        """Compute and store missing subtree heads of a log, in small batches."""
        while behind := await self._core.database.read(lambda connection: Tree(connection, log).behind()):
            tier, heads = behind
            try:
                await self._core.database.write(partial(log_rows.keep, log=log, tier=tier, heads=heads))
            except IntegrityError:
                return  # another process computes the same heads

    def _decisions(self, connection: Connection, who: Principal, asked: ReceiptInput) -> list[DecisionRecord]:
        """Return the decision that a receipt is of, and the one whose approval it counted or that counted its own."""
        decision_id = asked.decision_id or ""
        if asked.approval_id is not None:
            approval = self._core.find_approval(connection, who.tenant, asked.approval_id)
            if approval is None or not (Role.AUDITOR in who.roles or approval.requester == who.subject):
                raise approval_not_found(asked.approval_id)
            decision_id = approval.decision_id
        record = find_decision(connection, who.tenant, decision_id) if decision_id else None
        if record is None:
            return []
        other: DecisionRecord | None = None
        if record.approval_id:
            key = CallKey(record.tenant, record.subject, record.run_id, record.tool_call_id)
            other = find_call(connection, key, record.approval_id)
        elif record.counted_approval_id:
            approval = self._core.find_approval(connection, who.tenant, record.counted_approval_id)
            other = None if approval is None else find_decision(connection, who.tenant, approval.decision_id)
        return [record] if other is None else [record, other]

    def _approvals(self, connection: Connection, who: Principal, decided: Sequence[DecisionRecord]) -> list[Approval]:
        ids = dict.fromkeys(one.approval_id for one in decided if one.approval_id)
        found = [self._core.find_approval(connection, who.tenant, one) for one in ids]
        return [one for one in found if one is not None]

    def _of_receipt(
        self, connection: Connection, who: Principal, asked: ReceiptInput, decided: Sequence[DecisionRecord]
    ) -> tuple[str, list[ReadEntry], int]:
        """Return what a receipt is of, its entries, and how many refusals are not among them. Raise NotFound."""
        left_out = 0
        if asked.entry is not None:
            place = Place(asked.entry.log, asked.entry.index)
            at = rows.find_entry(connection, who.tenant, place)
            found, of = [] if at is None else [at], f"{place.log}:{place.index}"
            missing: NotFound = _not_found(
                f"the log '{place.log}' has no entry {place.index} of this caller", place.log
            )
        else:
            of = decided[0].id if decided else asked.decision_id or ""
            ids = {one.id for one in decided} or {of}
            found, left_out = rows.of_decisions(
                connection, who.tenant, ids, most=_MOST_OF_RECEIPT, most_refusals=_MOST_REFUSALS
            )
            told = f"decision '{of}' not found: this caller has none of this id, or retention has emptied its record"
            missing = NotFound("DECISION_NOT_FOUND", told, metadata={"decision_id": of})
        wanted = EntryFilter(who.tenant, FilterInput())
        read = [entry for one in found if (entry := wanted.read(one)) is not None]
        first = next((one for one in read if asked.entry is not None or _decides(one.record, of)), None)
        own = first is not None and (first.record.get("tenant"), first.record.get("subject")) == (
            who.tenant,
            who.subject,
        )
        if first is None or not (own or Role.AUDITOR in who.roles):
            raise missing
        return of, read, left_out

    def _proven(
        self, connection: Connection, who: Principal, asked: ReceiptInput, entry: ReadEntry, head: SignedHead
    ) -> ProvenEntry:
        """Return an entry with its proof, and with the values that may be shown if they were asked for."""
        found = entry.found
        _, path = Tree(connection, found.log).inclusion(found.stored.index, head.size)
        shown = asked.include_values and (Role.AUDITOR in who.roles or entry.record.get("subject") == who.subject)
        values = values_of(connection, entry, self._seen) if shown else {}
        return ProvenEntry(found.log, found.stored.index, found.stored.record, path, values)

    def _page(
        self, connection: Connection, who: Principal, asked: ListEntriesInput, after: rows.Position | None
    ) -> tuple[list[SeenEntry], str]:
        wanted = EntryFilter(who.tenant, asked.filter)
        page: list[SeenEntry] = []
        room, seen = _PAGE_BYTES, 0
        last: rows.FoundEntry | None = None
        found = rows.visible(
            connection, who.tenant, wanted.times, after=after, oldest_first=asked.oldest_first, limit=_SCAN
        )
        for last in found:
            seen += 1
            entry = wanted.read(last)
            if entry is None:
                continue
            page.append(self._seen(connection, entry, values=asked.include_values))
            room -= page[-1].bytes
            if len(page) == (asked.page_size or DEFAULT_PAGE) or room <= 0:
                return _with_revocations(connection, who.tenant, page), encode_token(*last.position)
        token = encode_token(*last.position) if last is not None and seen == _SCAN else ""
        return _with_revocations(connection, who.tenant, page), token

    def _seen(self, connection: Connection, entry: ReadEntry, *, values: bool) -> SeenEntry:
        """Return an entry as its auditor sees it, optionally with its values."""
        if not entry.record.get("values"):
            return SeenEntry(entry)
        tenant, place = str(entry.record.get("tenant")), entry.found.place
        if not rows.with_values(connection, tenant, {place: entry.found}):
            return SeenEntry(entry, erased=True)
        opened = self._core.audit.salted_values(connection, tenant, place) if values else None
        if opened is None:
            return SeenEntry(entry)
        return SeenEntry(entry, tuple(shown_values(entry.record, opened, self._core.engine.bundle.tools)))

    async def _current(self, log: str) -> SignedHead:
        """Return the current signed head of a log; also sign for a process that has ended."""
        signed = await self._core.database.read(lambda connection: self._signed_current(connection, log))
        if signed is None:
            signed = await self._sign_current(log)
        return _read_note(signed)

    def _signed_current(self, connection: Connection, log: str) -> str | None:
        """Return the note of the current head, or None if it was not signed and kept. Raise NotFound."""
        kept = self._core.audit.kept(log)
        head = log_rows.find_head(connection, log)
        if head is None:
            raise _not_found(f"log '{log}' not found", log)
        note = rows.find_checkpoint(connection, log, head.frontier.size)
        return note if note and KeptHead.of(head.frontier) == kept else None

    async def _sign_current(self, log: str) -> str:
        """Sign the current head of a log, and return its note once it is also kept outside the database."""
        now_us, audit = self._core.clock.now_us(), self._core.audit
        if log == audit.name:
            await self._core.write(lambda connection: audit.sign_head(connection, now_us))
            await asyncio.to_thread(audit.keep_signed)
            signed = await self._core.database.read(lambda connection: self._signed_current(connection, log))
            if signed is not None:
                return signed
        for _ in range(_TRIES):
            head = await self._core.write(lambda connection: self._sign(connection, log, now_us))
            if not head.size or await asyncio.to_thread(audit.keep, log, head):
                return head.note
        raise Unavailable("STORE_UNAVAILABLE", f"the log '{log}' grows faster than its head is signed; try again")

    def _sign(self, connection: Connection, log: str, now_us: int) -> KeptHead:
        """Sign the head of a log that another process writes or wrote."""
        found = log_rows.find_head(connection, log, lock=True)
        if found is None:
            raise _not_found(f"log '{log}' not found", log)
        head = self._core.audit.sign_other(connection, log, found.frontier)
        if head.size:
            log_rows.add_checkpoint(connection, log, head.size, head.note, now_us)
        return head


def _decides(record: Mapping[str, Any], of: str) -> bool:
    return record.get("kind") in (Kind.DECISION, Kind.ACCESS_EVALUATED) and about_decision(record) == of


def _with_revocations(connection: Connection, tenant: str, page: list[SeenEntry]) -> list[SeenEntry]:
    """Return entries that say of each recorded decision when it was revoked."""
    ids = [str(one.entry.record.get("decision_id")) if one.entry.found.kind == Kind.DECISION else "" for one in page]
    revoked = revoked_among(connection, tenant, {one for one in ids if one})
    return [replace(seen, revoke_us=revoked.get(one, 0)) for one, seen in zip(ids, page, strict=True)]


def _read_note(note: str) -> SignedHead:
    head = Checkpoint.parse(note.partition("\n\n")[0] + "\n")
    return SignedHead(head.origin, head.size, head.root, note)


def _check_size(connection: Connection, log: str, size: int) -> int:
    """Return the size of a log. Raise NotFound if it does not exist, OutOfRange if it is smaller than requested."""
    head = log_rows.find_head(connection, log)
    if head is None:
        raise _not_found(f"log '{log}' not found", log)
    if not 0 < size <= head.frontier.size:
        raise _out_of_range(f"the log '{log}' has {head.frontier.size} entries, not {size}", head.frontier.size)
    return head.frontier.size


def _not_found(message: str, log: str) -> NotFound:
    return NotFound("AUDIT_NOT_FOUND", message, metadata={"log": log})


def _out_of_range(message: str, size: int) -> OutOfRange:
    return OutOfRange("AUDIT_OUT_OF_RANGE", message, metadata={"size": str(size)})

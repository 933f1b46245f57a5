"""The last signed heads of the audit logs, kept outside the database: each new head must extend them.

An attacker who can write to the database can rewrite a log with its hashes, its head and its signed heads. A file per
log holds its signed heads, appended and fsynced, so a rewritten or shortened log is neither signed nor served. A head
is written to its file right after the commit of its entries: a crash in between leaves a file behind its log, but a log
is never behind its file.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.db.errors import is_full
from phylactery_chassis.errors import DataLoss, NotFound, StoreFull, Unavailable
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.durable_files import append_line, sync_folder
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.checkpoint import Checkpoint, sign_note
from phylactery_riskgate.audit.merkle import EMPTY_ROOT, HASH_BYTES, Frontier, verify_consistency
from phylactery_riskgate.audit.proofs import Tree
from phylactery_riskgate.store import audit as rows

_SUFFIX = ".heads"
_BEGUN = "begun"
_KEPT_ELSEWHERE = "heads.begun"
_TAIL_BYTES = 64 * 1024

_log = get_logger("heads")


class HeadsDisagree(DataLoss):
    """A log of the database does not extend the last head kept of it; the message says what to do."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__("INTERNAL", message, metadata={"log": log})


@dataclass(frozen=True, slots=True)
class KeptHead:
    """A signed head: the log's size and root, and the signed note.

    ``adopted`` gives the reason if it was adopted from the database unchecked; it need not extend the last one.
    """

    size: int
    root: bytes
    note: str = field(default="", compare=False)
    adopted: str = field(default="", compare=False)

    @classmethod
    def of(cls, frontier: Frontier, note: str = "", adopted: str = "") -> KeptHead:
        """Return the head of a frontier."""
        return cls(frontier.size, frontier.root(), note, adopted)


NOTHING = KeptHead(0, EMPTY_ROOT)


class HeadFile:
    """The file of one log, locked by this process while it is open for appending."""

    def __init__(self, log: str, path: Path, descriptor: int) -> None:
        self.log, self._path, self._descriptor = log, path, descriptor

    def last(self) -> KeptHead | None:
        """Return the last head, or None if none was kept. Raise HeadsDisagree if the file is damaged, and OSError."""
        return _last(self.log, self._path, self._descriptor)

    def append(self, head: KeptHead) -> None:
        """Append a head; it is durable on return. Raise OSError."""
        self._cut_torn_line()
        first = os.fstat(self._descriptor).st_size == 0
        fields = {"size": head.size, "root": head.root.hex(), "time_us": time.time_ns() // 1_000, "note": head.note}
        append_line(self._descriptor, json.dumps(fields | ({"adopted": head.adopted} if head.adopted else {})))
        if first:
            sync_folder(self._path.parent)

    def _cut_torn_line(self) -> None:
        """Drop a line that a crash left unfinished: no response depended on it."""
        size = os.fstat(self._descriptor).st_size
        start = max(0, size - _TAIL_BYTES)
        whole = start + os.pread(self._descriptor, _TAIL_BYTES, start).rfind(b"\n") + 1
        if whole != size:
            os.ftruncate(self._descriptor, whole)


class HeadStore:
    """A folder with a file of kept heads per log. Processes and threads may share it."""

    def __init__(self, folder: Path, beside: Path | None = None) -> None:
        """Set the folder; ``beside`` is another one, of the keys, which also records that heads are kept.

        A folder that says by itself that it was begun says nothing once it is removed, or an empty one is named.
        """
        self.folder = folder
        self._marks = (folder / _BEGUN, *(() if beside is None else (beside / _KEPT_ELSEWHERE,)))

    def path(self, log: str) -> Path:
        """Return the file of a log."""
        return self.folder / (quote(log, safe=":") + _SUFFIX)

    def names(self) -> list[str]:
        """Return the names of the logs with a file, sorted. Raise Unavailable STORE_UNAVAILABLE."""
        with _faults_told(self.folder):
            return sorted(unquote(one.name.removesuffix(_SUFFIX)) for one in self.folder.glob(f"*{_SUFFIX}"))

    def last(self, log: str) -> KeptHead | None:
        """Return the last head kept of a log, or None.

        Raise HeadsDisagree if the file is damaged, and Unavailable STORE_UNAVAILABLE.
        """
        path = self.path(log)
        with _faults_told(path):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            try:
                return _last(log, path, descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def opened(self, log: str) -> Iterator[HeadFile]:
        """Open the file of a log for appending, with an exclusive lock among all that share the folder.

        Raise Unavailable STORE_UNAVAILABLE and StoreFull, also for errors in the block.
        """
        path = self.path(log)
        with _faults_told(path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield HeadFile(log, path, descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def all_opened(self) -> Iterator[dict[str, HeadFile]]:
        """Open the files of all logs, in the order of their names: no head of theirs is signed meanwhile."""
        with ExitStack() as stack:
            yield {name: stack.enter_context(self.opened(name)) for name in self.names()}

    def keep(self, log: str, head: KeptHead) -> bool:
        """Append a head that was proved to extend the last one, unless it is the last already.

        Return False, and append nothing, if a larger one was kept in the meantime, which is not proved to extend this
        one. Raise HeadsDisagree if a different one of the same size was kept, and as ``opened``.
        """
        with self.opened(log) as file:
            last = file.last()
            if last is not None and last.size > head.size:
                return False
            if last is not None and last.size == head.size and last != head:
                raise disagreement(self, log, last, head.size)
            if last != head:
                file.append(head)
        return True

    @property
    def begun(self) -> bool:
        """Return True if a version that keeps heads has served here: votes from before have their proofs since then."""
        return any(one.exists() for one in self._marks)

    def begin(self) -> None:
        """Mark that no vote without a proof is adopted from now on. Raise Unavailable STORE_UNAVAILABLE.

        Installations of earlier versions get the mark in the folder of the keys at their next start. Where that folder
        is read-only, it has no mark, which is logged.
        """
        for mark in self._marks:
            if mark.exists():
                continue
            try:
                with _faults_told(mark.parent):
                    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
                    sync_folder(mark.parent)
            except Unavailable:
                if mark.parent == self.folder:
                    raise
                _log.warning(
                    "it would not be noticed if the heads were removed: no mark can be written", mark=str(mark)
                )


def require_growth(connection: Connection, store: HeadStore, log: str, last: KeptHead, frontier: Frontier) -> None:
    """Raise HeadsDisagree unless a tree in the database extends the last head kept of it.

    The database need not be trusted: the proof is made from it, and checked against the head kept outside.
    """
    if last.size == 0:
        return
    grown = last == KeptHead.of(frontier)
    if last.size < frontier.size:
        try:
            path = Tree(connection, log).consistency(last.size, frontier.size)
        except DataLoss:
            path = []
        grown = verify_consistency(last.size, frontier.size, path, last.root, frontier.root())
    if not grown:
        raise disagreement(store, log, last, frontier.size)


def disagreement(store: HeadStore, log: str, last: KeptHead, size: int) -> HeadsDisagree:
    """Return the error for a log that differs from its kept head."""
    how = (
        f"has {size} entries and {last.size} were signed"
        if size < last.size
        else f"has {size} entries that do not begin with the {last.size} that were signed"
    )
    return HeadsDisagree(
        f"the audit log '{log}' of this database {how}, as {store.path(log)} shows: it was rewritten, or an older "
        "copy of the database was restored. Decisions and signing are stopped. Restore the newest backup of the "
        f"database or, if you know the cause and want to continue with it, run: riskgate audit adopt --log {log} "
        f"--reason WHY",
        log,
    )


def missing(store: HeadStore, log: str) -> HeadsDisagree:
    """Return the error for a log with entries whose file of kept heads is missing."""
    return HeadsDisagree(
        f"the audit log '{log}' of this database has entries but no signed head in {store.folder}: the file was "
        "removed, the log was inserted into the database, this is another machine that takes the log over, or a "
        "version before 0.2 wrote it. Restore the file, or copy the folder from the machine that wrote the log; a "
        "replica beside it needs a name of its own (RISKGATE_INSTANCE) instead. If neither is possible and you know "
        f"that the log is correct, run: riskgate audit adopt --log {log} --reason WHY",
        log,
    )


def not_kept(store: HeadStore, log: str) -> NotFound:
    """Return the error for a log with entries but without a kept head here, so that none may be signed."""
    return NotFound(
        "AUDIT_NOT_FOUND",
        f"no signed head of the log '{log}' is stored in {store.folder}, so none is signed here: request it from the "
        "RiskGate that writes the log or, if you know that its entries are correct, run: riskgate audit adopt --log "
        f"{log} --reason WHY",
        metadata={"log": log},
    )


def adopt(connection: Connection, store: HeadStore, log: str, signer: Ed25519PrivateKey, reason: str) -> KeptHead:
    """Adopt a log from the database, regardless of its kept head, and return its newly signed head.

    For an operator who knows the cause; earlier heads stay in the file. Raise as HeadStore.opened.
    """
    with store.opened(log) as file:
        head = rows.find_head(connection, log)
        frontier = Frontier() if head is None else head.frontier
        note = sign_note(Checkpoint(log, frontier.size, frontier.root()).text, log, signer)
        adopted = KeptHead.of(frontier, note, reason)
        file.append(adopted)
    return adopted


def check_all(connection: Connection, store: HeadStore, issuer: str) -> None:
    """Raise HeadsDisagree unless every log of an issuer with kept heads extends the last of them.

    A log that has entries but no kept head is not signed here: that is logged.
    """
    kept = {name for name in store.names() if of_issuer(name, issuer)}
    for name in sorted(kept):
        # read before the log: its process may be about to keep a head of what is committed by now
        last = store.last(name) or NOTHING
        head = rows.find_head(connection, name)
        require_growth(connection, store, name, last, Frontier() if head is None else head.frontier)
    for name in rows.log_names(connection):
        head = rows.find_head(connection, name) if of_issuer(name, issuer) and name not in kept else None
        if head is not None and head.frontier.size:
            _log.warning("no head of this log is kept here, so none is signed here", log=name, folder=str(store.folder))


def of_issuer(log: str, issuer: str) -> bool:
    """Return True if a log belongs to an issuer."""
    return log.partition("/")[0] == issuer


def read_notes(lines: Sequence[str]) -> list[str]:
    """Return the signed notes of a file of kept heads, oldest first, without those before an adoption.

    Raise ValueError if a line is not a stored head.
    """
    notes: list[str] = []
    for line in lines:
        head = _read(line.encode())
        if head.adopted:
            notes.clear()
        if head.note:
            notes.append(head.note)
    return notes


def _last(log: str, path: Path, descriptor: int) -> KeptHead | None:
    """Return the head of the last complete line."""
    size = os.fstat(descriptor).st_size
    start = max(0, size - _TAIL_BYTES)
    lines = os.pread(descriptor, _TAIL_BYTES, start).split(b"\n")[:-1]
    if not lines:
        return None
    try:
        return _read(lines[-1])
    except ValueError:
        raise HeadsDisagree(
            f"the last line of {path} is not a valid head, so it is unknown whether the log '{log}' was rewritten; "
            f"restore the file or, if you know that the log is correct, remove the line and run: "
            f"riskgate audit adopt --log {log} --reason WHY",
            log,
        ) from None


def _read(line: bytes) -> KeptHead:
    """Parse a line. Raise ValueError."""
    value: Any = json.loads(line)
    try:
        head = KeptHead(value["size"], bytes.fromhex(value["root"]), value["note"], value.get("adopted", ""))
    except (KeyError, TypeError, AttributeError):
        raise ValueError("not a stored head") from None
    if not isinstance(head.size, int) or head.size < 0 or len(head.root) != HASH_BYTES:
        raise ValueError("not a stored head")
    return head


@contextmanager
def _faults_told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise StoreFull("the stored heads of the audit log") from None
        raise Unavailable(
            "STORE_UNAVAILABLE",
            f"the heads of the audit log cannot be written to {path} ({error.strerror}), so nothing was signed; make "
            f"it writable, or set RISKGATE_HEADS_DIR to another folder",
        ) from None

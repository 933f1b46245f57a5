"""The audit log as a file, and the check of such a file with the public key alone.

JSON lines: for each log one "log" (origin, public keys), its signed heads smallest first, then every entry with its
leaf hash. The heads come first so that a file of any length is checked in one pass. An export of all logs begins with
their signed list, so that none can be left out.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.identity import Principal
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.checkpoint import Checkpoint, NoteError, Verifier, sign_note, signed_by
from phylactery_riskgate.audit.entries import EntryFilter, ReadEntry
from phylactery_riskgate.audit.heads import (
    NOTHING,
    HeadFile,
    HeadsDisagree,
    HeadStore,
    KeptHead,
    not_kept,
    require_growth,
)
from phylactery_riskgate.audit.merkle import leaf_hash
from phylactery_riskgate.audit.requests import ExportInput, FilterInput
from phylactery_riskgate.audit.verify import FORMAT, Report, Trusted, check_lines, index_text, unique_names
from phylactery_riskgate.decisions.context import Core
from phylactery_riskgate.keys.permits import encode
from phylactery_riskgate.keys.ring import PublicKey
from phylactery_riskgate.store import audit as log_rows
from phylactery_riskgate.store import audit as rows
from phylactery_riskgate.store import audit_search
from phylactery_riskgate.store.audit_search import find_checkpoint, newest_checkpoint

if TYPE_CHECKING:
    from phylactery_riskgate.audit.reader import SeenEntry, SignedHead


ShownValues = Callable[[Connection, str, rows.StoredEntry], dict[str, Any]]
"""Answers the values of an entry that may be shown, each with its salt, by JSON Pointer."""


class ExportError(RuntimeError):
    """The log cannot be exported; the message says why."""


@dataclass(frozen=True, slots=True)
class _Exported:
    """One log of an export: how large it is said to be, heads beside those of the database, and where it is cut."""

    size: int
    notes: tuple[str, ...] = ()
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class Exporter:
    """What an export is made with: the keys it names, the one it signs with, and what shows values, None for none.

    A head is signed that grows out of the last one kept in ``heads``, and is kept there. ``problems`` are filled with
    what is wrong with logs that are not those that were signed: they are exported as they are, for verify to find it.
    """

    issuer: str
    keys: Sequence[PublicKey]
    signer: Ed25519PrivateKey
    heads: HeadStore
    shown: ShownValues | None = None
    problems: list[str] = field(default_factory=list)

    def lines(self, connection: Connection, names: Sequence[str] = ()) -> Iterator[bytes]:
        """Yield an export of these logs, or of all; several come with their signed list. Raise ExportError.

        The connection has read nothing yet: what it sees must not be from before the last kept heads.
        """
        with self.heads.all_opened() as files:
            found = {
                name: self._signed(connection, name, files.get(name)) for name in names or rows.log_names(connection)
            }
        if len(found) != 1:
            sizes = {name: log.size for name, log in found.items()}
            note = sign_note(index_text(self.issuer, sizes), self.issuer, self.signer)
            keys = _described(self.issuer, self.keys)
            yield _line({"type": "export", "format": FORMAT, "issuer": self.issuer, "keys": keys, "note": note})
        for name, log in found.items():
            yield from self._log(connection, name, log)

    def _signed(self, connection: Connection, name: str, file: HeadFile | None) -> _Exported:
        """Sign a log's head by the key of today, so that whoever knows that key alone can check it.

        The head comes from the frontier beside the log, never from the entries: entries that were altered do not get a
        fresh signature. A log that no head is kept of here is exported up to the last one that was signed elsewhere.
        """
        frontier = _head(connection, name).frontier
        last = None if file is None else file.last()
        own = Verifier(name, self.signer.public_key().public_bytes_raw())
        if last is None and frontier.size:
            note = newest_checkpoint(connection, name)
            if not signed_by(note, [Verifier(name, key.raw) for key in self.keys]):
                raise ExportError(not_kept(self.heads, name).message)
            size = Checkpoint.parse(note.partition("\n\n")[0] + "\n").size
            return _Exported(size, cut=size)
        try:
            require_growth(connection, self.heads, name, last or NOTHING, frontier)
        except HeadsDisagree as error:
            self.problems.append(error.message)
            return _Exported(frontier.size, (last.note,) if last is not None and last.note else ())
        note = find_checkpoint(connection, name, frontier.size)
        if not signed_by(note, [own]):
            note = sign_note(Checkpoint(name, frontier.size, frontier.root()).text, name, self.signer)
        if file is not None and last != (head := KeptHead.of(frontier, note)):
            file.append(head)
        return _Exported(frontier.size, (note,))

    def _log(self, connection: Connection, name: str, log: _Exported) -> Iterator[bytes]:
        yield from log_lines(name, self.keys, (*rows.checkpoints(connection, name), *log.notes))
        for entry in rows.entries(connection, name, log.cut):
            if not entry.record:
                yield emptied_line(entry.index, entry.leaf)
                continue
            yield entry_line(entry, self.shown(connection, name, entry) if self.shown else {})


def export_log(
    connection: Connection,
    name: str,
    out: Path,
    *,
    keys: Iterable[PublicKey],
    signer: Ed25519PrivateKey,
    heads: HeadStore,
) -> int:
    """Write one log to a file, whole or not at all, and return the number of entries. Raise ExportError."""
    return write_export(out, Exporter(name, tuple(keys), signer, heads).lines(connection, [name]))


def write_export(out: Path, lines: Iterable[bytes]) -> int:
    """Write an export to a file, whole or not at all, and return the number of entries in it.

    Over one transaction it reads one snapshot, so it works while the service writes.
    """
    part = out.with_name(f"{out.name}.{os.getpid()}.part")
    count = 0
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            for line in lines:
                file.write(line)
                count += line.startswith(b'{"type":"entry"')
            file.flush()
            os.fsync(file.fileno())
        part.replace(out)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    return count


def verify_export(path: Path, trusted: Trusted | None = None, kept: Sequence[str] = ()) -> Report:
    """Check a file written by an export; see audit_check.check_lines."""
    try:
        with path.open("rb") as file:
            return check_lines(file, trusted, kept)
    except OSError as error:
        return Report((), f"the file cannot be read ({error.strerror})")


def _head(connection: Connection, name: str) -> rows.Head:
    head = rows.find_head(connection, name)
    if head is None:
        raise ExportError(f"there is no log '{name}'; there are: {', '.join(rows.log_names(connection)) or 'none'}")
    return head


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _described(name: str, keys: Iterable[PublicKey]) -> list[dict[str, Any]]:
    return [{"jwk": key.jwk, "state": str(key.state), "vkey": Verifier(name, key.raw).text} for key in keys]


def log_lines(name: str, keys: Iterable[PublicKey], notes: Iterable[str]) -> Iterator[bytes]:
    """Yield the lines a log begins with: its name and keys, and its signed heads."""
    yield _line({"type": "log", "format": FORMAT, "origin": name, "keys": _described(name, keys)})
    for note in dict.fromkeys(notes):
        yield _line({"type": "checkpoint", "note": note})


def hidden_line(index: int, leaf: bytes) -> bytes:
    """Return the line of an entry that is not shown: its leaf hash proves its place, and tell nothing."""
    return b'{"type":"hidden","index":%d,"leaf_hash":"%s"}\n' % (index, leaf.hex().encode())


def emptied_line(index: int, leaf: bytes) -> bytes:
    """Return the line of an entry without a record: a record of retention in the log has to tell of it."""
    return b'{"type":"emptied","index":%d,"leaf_hash":"%s"}\n' % (index, leaf.hex().encode())


def entry_line(entry: rows.StoredEntry, values: dict[str, Any]) -> bytes:
    """Return the line with the record's own bytes, last in it, so that they can be hashed as they stand."""
    record = entry.record if leaf_hash(entry.record) == entry.leaf else _of_another_leaf(entry.record)
    shown = b',"values":' + _line(values)[:-1] if values else b""
    head = b'{"type":"entry","index":%d,"leaf_hash":"%s"' % (entry.index, entry.leaf.hex().encode())
    return head + shown + b',"record":' + record + b"}\n"


def _of_another_leaf(record: bytes) -> bytes:
    """Return an altered record in one line; one that is no JSON any more becomes null, and is found either way."""
    try:
        json.loads(record.decode(), object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return b"null"
    return record.replace(b"\n", b" ")  # between tokens: inside a string JSON has none


_AT_ONCE = 500
_AT_ONCE_WITH_VALUES = 16
"""Entries read at once: their values may be a megabyte each."""
_CHUNK_BYTES = 256 * 1024

Seen = Callable[..., "SeenEntry"]


async def exported(
    core: Core, who: Principal, asked: ExportInput, head: SignedHead, seen: Seen
) -> AsyncGenerator[bytes]:
    """Yield the bytes of an export of one log up to a signed head, a part at a time."""
    ring, step = core.keys.ring, _AT_ONCE_WITH_VALUES if asked.include_values else _AT_ONCE

    def begin(connection: Connection) -> list[bytes]:
        notes = [*log_rows.checkpoints(connection, head.log), head.note]
        return list(log_lines(head.log, ring.public, (note for note in notes if _size(note) <= head.size)))

    for part in _parts(await core.database.read(begin)):
        yield part
    for first in range(0, head.size, step):
        read = partial(_page, who=who, asked=asked, log=head.log, first=first, end=min(first + step, head.size))
        for part in _parts(await core.database.read(partial(read, seen=seen))):
            yield part


def _page(
    connection: Connection, *, who: Principal, asked: ExportInput, log: str, first: int, end: int, seen: Seen
) -> list[bytes]:
    """Return the lines of the entries from one index to before another."""
    wanted = EntryFilter(who.tenant, FilterInput())
    visible = {
        one.stored.index: wanted.read(one) for one in audit_search.following(connection, who.tenant, log, first, end)
    }
    lines = []
    for index, leaf in audit_search.leaves_of(connection, log, first, end):
        entry = visible.get(index)
        if entry is None:
            lines.append(hidden_line(index, leaf))
        else:
            values = _values(connection, entry, seen) if asked.include_values else {}
            lines.append(entry_line(entry.found.stored, values))
    return lines


def _values(connection: Connection, entry: ReadEntry, seen: Seen) -> dict[str, Any]:
    shown = seen(connection, entry, values=True).values
    return {
        one.path: {"value": json.loads(one.value_json), "salt": encode(one.salt)} for one in shown if not one.withheld
    }


def _size(note: str) -> int:
    """Return the size of a signed head, 0 of one that is damaged: verify says of it that it is."""
    try:
        return Checkpoint.parse(note.partition("\n\n")[0] + "\n").size
    except NoteError:
        return 0


def _parts(lines: list[bytes]) -> list[bytes]:
    """Return lines as parts of no more than so many bytes, wherever that cuts them."""
    whole = b"".join(lines)
    return [whole[at : at + _CHUNK_BYTES] for at in range(0, len(whole), _CHUNK_BYTES)]

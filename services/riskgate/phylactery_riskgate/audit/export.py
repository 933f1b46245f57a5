"""Export of the audit log to a file, and its verification with the public key alone.

JSON lines: for each log one "log" line (origin, public keys), its signed heads smallest first, then every entry with
its leaf hash. The heads come first so that a file of any length is checked in one pass. An export of all logs begins
with their signed list, so that none can be left out.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.auth.jws import encode
from phylactery_chassis.util.durable_files import whole_file
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.checkpoint import Checkpoint, NoteError, Verifier, sign_note, signed_by
from phylactery_riskgate.audit.entries import EntryFilter, ReadEntry, SeenEntry, SignedHead
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
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.keys.ring import PublicKey
from phylactery_riskgate.store import audit as log_rows
from phylactery_riskgate.store import audit_search
from phylactery_riskgate.store.audit_search import find_checkpoint, newest_checkpoint

ShownValues = Callable[[Connection, str, log_rows.StoredEntry], dict[str, Any]]
"""Function that returns the values of an entry that may be shown, each with its salt, by JSON Pointer."""


class ExportError(RuntimeError):
    """The log cannot be exported; the message says why."""


@dataclass(frozen=True, slots=True)
class _Exported:
    """One log of an export: its stated size, heads besides those of the database, and where it is cut."""

    size: int
    notes: tuple[str, ...] = ()
    cut: int | None = None


@dataclass(frozen=True, slots=True)
class Exporter:
    """Parameters of an export: the keys it names, the signing key, and the value reader (None omits values).

    The signed head extends the last one kept in ``heads``, and is kept there. ``problems`` collects the findings about
    logs that differ from their signed heads, by log: they are exported unchanged, for verify to detect. With ``every``
    a log without any head of its own is one of these; otherwise it ends the export.
    """

    issuer: str
    keys: Sequence[PublicKey]
    signer: Ed25519PrivateKey
    heads: HeadStore
    shown: ShownValues | None = None
    problems: dict[str, str] = field(default_factory=dict)
    every: bool = False

    def lines(self, connection: Connection, names: Sequence[str] = ()) -> Iterator[bytes]:
        """Yield an export of these logs, or of all; several come with their signed list. Raise ExportError.

        The connection must not have read anything yet: its snapshot must not predate the last kept heads.
        """
        with self.heads.all_opened() as files:
            found = {
                name: self._signed(connection, name, files.get(name))
                for name in names or log_rows.log_names(connection)
            }
        if len(found) != 1:
            sizes = {name: log.size for name, log in found.items()}
            note = sign_note(index_text(self.issuer, sizes), self.issuer, self.signer)
            keys = _described(self.issuer, self.keys)
            yield _line({"type": "export", "format": FORMAT, "issuer": self.issuer, "keys": keys, "note": note})
        for name, log in found.items():
            yield from self._log(connection, name, log)

    def _signed(self, connection: Connection, name: str, file: HeadFile | None) -> _Exported:
        """Sign a log's head with the current key, so that it can be checked with that key alone.

        The head comes from the frontier stored with the log, never from the entries: altered entries do not get a fresh
        signature. A log without a kept head here is exported up to the last head signed elsewhere.
        """
        frontier = _head(connection, name).frontier
        try:
            last = None if file is None else file.last()
        except HeadsDisagree as error:  # the file is damaged
            self.problems[name] = error.message
            return _Exported(frontier.size)
        own = Verifier(name, self.signer.public_key().public_bytes_raw())
        if last is None and frontier.size:
            note = newest_checkpoint(connection, name)
            if not signed_by(note, [Verifier(name, key.raw) for key in self.keys]):
                problem = not_kept(self.heads, name).message
                if not self.every:
                    raise ExportError(problem)
                self.problems[name] = problem
                return _Exported(frontier.size)
            size = Checkpoint.parse(note.partition("\n\n")[0] + "\n").size
            return _Exported(size, cut=size)
        try:
            require_growth(connection, self.heads, name, last or NOTHING, frontier)
        except HeadsDisagree as error:
            self.problems[name] = error.message
            return _Exported(frontier.size, (last.note,) if last is not None and last.note else ())
        note = find_checkpoint(connection, name, frontier.size)
        if not signed_by(note, [own]):
            note = sign_note(Checkpoint(name, frontier.size, frontier.root()).text, name, self.signer)
        if file is not None and last != (head := KeptHead.of(frontier, note)):
            file.append(head)
        return _Exported(frontier.size, (note,))

    def _log(self, connection: Connection, name: str, log: _Exported) -> Iterator[bytes]:
        yield from log_lines(name, self.keys, (*log_rows.checkpoints(connection, name), *log.notes))
        for entry in log_rows.entries(connection, name, log.cut):
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
    """Write one log to a file atomically, and return the number of entries. Raise ExportError."""
    return write_export(out, Exporter(name, tuple(keys), signer, heads).lines(connection, [name]))


def write_export(out: Path, lines: Iterable[bytes]) -> int:
    """Write an export to a file atomically, and return the number of entries in it.

    Within one transaction it reads one snapshot, so it works while the service writes.
    """
    count = 0
    with whole_file(out) as file:
        for line in lines:
            file.write(line)
            count += line.startswith(b'{"type":"entry"')
    return count


def verify_export(path: Path, trusted: Trusted | None = None, kept: Sequence[str] = ()) -> Report:
    """Check a file written by an export; see verify.check_lines."""
    try:
        with path.open("rb") as file:
            return check_lines(file, trusted, kept)
    except OSError as error:
        return Report((), f"the file cannot be read ({error.strerror})")


def _head(connection: Connection, name: str) -> log_rows.Head:
    head = log_rows.find_head(connection, name)
    if head is None:
        raise ExportError(
            f"log '{name}' not found; existing logs: {', '.join(log_rows.log_names(connection)) or 'none'}"
        )
    return head


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _described(name: str, keys: Iterable[PublicKey]) -> list[dict[str, Any]]:
    return [{"jwk": key.jwk, "state": str(key.state), "vkey": Verifier(name, key.raw).text} for key in keys]


def log_lines(name: str, keys: Iterable[PublicKey], notes: Iterable[str]) -> Iterator[bytes]:
    """Yield the first lines of a log: its name and keys, and its signed heads."""
    yield _line({"type": "log", "format": FORMAT, "origin": name, "keys": _described(name, keys)})
    for note in dict.fromkeys(notes):
        yield _line({"type": "checkpoint", "note": note})


def hidden_line(index: int, leaf: bytes) -> bytes:
    """Return the line of an entry that is not shown: its leaf hash proves its place and reveals nothing."""
    return b'{"type":"hidden","index":%d,"leaf_hash":"%s"}\n' % (index, leaf.hex().encode())


def emptied_line(index: int, leaf: bytes) -> bytes:
    """Return the line of an entry without a record; a retention record in the log must account for it."""
    return b'{"type":"emptied","index":%d,"leaf_hash":"%s"}\n' % (index, leaf.hex().encode())


def entry_line(entry: log_rows.StoredEntry, values: dict[str, Any]) -> bytes:
    """Return the line of an entry, with the record's own bytes last, so that they can be hashed unchanged."""
    record = entry.record if leaf_hash(entry.record) == entry.leaf else _of_another_leaf(entry.record)
    shown = b',"values":' + _line(values)[:-1] if values else b""
    head = b'{"type":"entry","index":%d,"leaf_hash":"%s"' % (entry.index, entry.leaf.hex().encode())
    return head + shown + b',"record":' + record + b"}\n"


def _of_another_leaf(record: bytes) -> bytes:
    """Return an altered record in one line; one that is not JSON any more becomes null, and is detected either way."""
    try:
        json.loads(record.decode(), object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return b"null"
    return record.replace(b"\n", b" ")  # between tokens: a JSON string contains none


_AT_ONCE = 500
_AT_ONCE_WITH_VALUES = 16
"""Batch size with values, which may be a megabyte per entry."""
_CHUNK_BYTES = 256 * 1024

Seen = Callable[..., "SeenEntry"]


async def exported(
    core: DecisionContext, who: Principal, asked: ExportInput, head: SignedHead, seen: Seen
) -> AsyncGenerator[bytes]:
    """Yield an export of one log up to a signed head, in chunks of bytes."""
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
    """Return the lines of the entries from first to before end."""
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
            values = values_of(connection, entry, seen) if asked.include_values else {}
            lines.append(entry_line(entry.found.stored, values))
    return lines


def values_of(connection: Connection, entry: ReadEntry, seen: Seen) -> dict[str, Any]:
    """Return the values of an entry that may be shown, each with its salt, by JSON Pointer."""
    shown = seen(connection, entry, values=True).values
    return {
        one.path: {"value": json.loads(one.value_json), "salt": encode(one.salt)} for one in shown if not one.withheld
    }


def _size(note: str) -> int:
    """Return the size of a signed head, 0 for a damaged one, which verify reports."""
    try:
        return Checkpoint.parse(note.partition("\n\n")[0] + "\n").size
    except NoteError:
        return 0


def _parts(lines: list[bytes]) -> list[bytes]:
    """Return the lines as chunks of at most _CHUNK_BYTES, cut anywhere."""
    whole = b"".join(lines)
    return [whole[at : at + _CHUNK_BYTES] for at in range(0, len(whole), _CHUNK_BYTES)]

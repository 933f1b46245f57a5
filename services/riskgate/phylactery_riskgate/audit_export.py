"""The audit log as a file, and the check of such a file with the public key alone.

JSON lines: for each log one "log" (origin, public keys), its signed heads smallest first, then every entry with its
leaf hash. The heads come first so that a file of any length is checked in one pass. An export of all logs begins with
their signed list, so that none can be left out.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit_check import FORMAT, Report, Trusted, check_lines, index_text, unique_names
from phylactery_riskgate.checkpoint import Checkpoint, Verifier, sign_note, signed_by
from phylactery_riskgate.keys import PublicKey
from phylactery_riskgate.merkle import leaf_hash
from phylactery_riskgate.store import audit as rows

ShownValues = Callable[[Connection, str, rows.StoredEntry], dict[str, Any]]
"""Answers the values of an entry that may be shown, each with its salt, by JSON Pointer."""


class ExportError(RuntimeError):
    """The log cannot be exported; the message says why."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """What an export is made with: the keys it names, the one it signs with, and what shows values, None for none."""

    issuer: str
    keys: Sequence[PublicKey]
    signer: Ed25519PrivateKey
    shown: ShownValues | None = None

    def lines(self, connection: Connection, names: Sequence[str]) -> Iterator[bytes]:
        """Yields an export of these logs; several come with their signed list. Raises ExportError."""
        heads = {name: _head(connection, name) for name in names}
        if len(heads) != 1:
            note = sign_note(
                index_text(self.issuer, {name: head.frontier.size for name, head in heads.items()}),
                self.issuer,
                self.signer,
            )
            keys = self._described(self.issuer)
            yield _line({"type": "export", "format": FORMAT, "issuer": self.issuer, "keys": keys, "note": note})
        for name, head in heads.items():
            yield from self._log(connection, name, head)

    def _log(self, connection: Connection, name: str, head: rows.Head) -> Iterator[bytes]:
        """Yields one log.

        The head signed for it comes from the frontier beside the log, never from the entries: entries that were altered
        do not get a fresh signature.
        """
        yield _line({"type": "log", "format": FORMAT, "origin": name, "keys": self._described(name)})
        note = ""
        for note in rows.checkpoints(connection, name):
            yield _line({"type": "checkpoint", "note": note})
        own = Verifier(name, self.signer.public_key().public_bytes_raw())
        # a head by the key of today, so that whoever knows that key alone can check it
        if head.frontier.size != head.signed_size or not signed_by(note, [own]):
            note = sign_note(Checkpoint(name, head.frontier.size, head.frontier.root()).text, name, self.signer)
            yield _line({"type": "checkpoint", "note": note})
        for entry in rows.entries(connection, name):
            yield _entry_line(entry, self.shown(connection, name, entry) if self.shown else {})

    def _described(self, name: str) -> list[dict[str, Any]]:
        return [{"jwk": key.jwk, "state": str(key.state), "vkey": Verifier(name, key.raw).text} for key in self.keys]


def export_log(
    connection: Connection, name: str, out: Path, *, keys: Iterable[PublicKey], signer: Ed25519PrivateKey
) -> int:
    """Writes one log to a file, whole or not at all, and answers the number of entries. Raises ExportError."""
    return write_export(out, Exporter(name, tuple(keys), signer).lines(connection, [name]))


def write_export(out: Path, lines: Iterable[bytes]) -> int:
    """Writes an export to a file, whole or not at all, and answers the number of entries in it.

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
    """Checks a file written by an export; see audit_check.check_lines."""
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


def _entry_line(entry: rows.StoredEntry, values: dict[str, Any]) -> bytes:
    """Answers the line with the record's own bytes, last in it, so that they can be hashed as they stand."""
    record = entry.record if leaf_hash(entry.record) == entry.leaf else _of_another_leaf(entry.record)
    shown = b',"values":' + _line(values)[:-1] if values else b""
    head = b'{"type":"entry","index":%d,"leaf_hash":"%s"' % (entry.index, entry.leaf.hex().encode())
    return head + shown + b',"record":' + record + b"}\n"


def _of_another_leaf(record: bytes) -> bytes:
    """Answers an altered record in one line; one that is no JSON any more becomes null, and is found either way."""
    try:
        json.loads(record.decode(), object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        return b"null"
    return record.replace(b"\n", b" ")  # between tokens: inside a string JSON has none

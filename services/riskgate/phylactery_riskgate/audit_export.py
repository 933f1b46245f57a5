"""The audit log as a file, and the check of such a file with the public key alone.

JSON lines: one "log" (origin, public keys), its signed heads smallest first, then every entry with its leaf hash. The
heads come first so that a file of any length is checked in one pass.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy.engine import Connection

from phylactery_riskgate.checkpoint import Checkpoint, NoteError, UnknownKeyError, Verifier, open_note, sign_note
from phylactery_riskgate.keys import PublicKey
from phylactery_riskgate.merkle import Frontier, leaf_hash
from phylactery_riskgate.permits import TokenError, decode
from phylactery_riskgate.store import audit as rows

FORMAT = 1


class ExportError(RuntimeError):
    """The log cannot be exported; the message says why."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What the check of an export found. ``first_bad`` is the index of the first entry that cannot be trusted."""

    origin: str
    entries: int
    problem: str = ""
    first_bad: int | None = None

    @property
    def ok(self) -> bool:
        """Says whether every entry is the one that was signed."""
        return not self.problem


class _Fault(Exception):
    """Something in the export is not as it was signed."""

    def __init__(self, problem: str, first_bad: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.first_bad = first_bad


def export_log(
    connection: Connection, name: str, out: Path, *, keys: Iterable[PublicKey], signer: Ed25519PrivateKey
) -> int:
    """Writes the log to a file, whole or not at all, and answers the number of entries.

    Reads one snapshot, so it works while the service writes. The head that is signed for the export comes from the
    frontier beside the log, never from the entries: entries that were altered do not get a fresh signature.
    Raises ExportError.
    """
    head = rows.find_head(connection, name)
    if head is None:
        raise ExportError(f"there is no log '{name}'; there are: {', '.join(rows.log_names(connection)) or 'none'}")
    part = out.with_name(out.name + ".part")
    count = 0
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        described = [{"jwk": key.jwk, "state": str(key.state), "vkey": Verifier(name, key.raw).text} for key in keys]
        file.write(_line({"type": "log", "format": FORMAT, "origin": name, "keys": described}))
        for note in rows.checkpoints(connection, name):
            file.write(_line({"type": "checkpoint", "note": note}))
        if head.frontier.size != head.signed_size or head.frontier.size == 0:
            note = sign_note(Checkpoint(name, head.frontier.size, head.frontier.root()).text, name, signer)
            file.write(_line({"type": "checkpoint", "note": note}))
        for entry in rows.entries(connection, name):
            file.write(_entry_line(entry))
            count += 1
        file.flush()
        os.fsync(file.fileno())
    part.replace(out)
    return count


def verify_export(path: Path, trusted: Sequence[PublicKey | Verifier] | None = None) -> Verification:
    """Checks a file written by export_log: signatures, heads, leaves, order, completeness.

    trusted are the keys to believe, as public keys or as vkeys; without any, those in the file are believed, which
    shows that it is whole but not whose it is.
    """
    check = _Check(trusted)
    try:
        with path.open("rb") as file:
            check.run(_parsed(file))
    except _Fault as fault:
        return Verification(check.origin, check.frontier.size, fault.problem, fault.first_bad)
    except OSError as error:
        return Verification(check.origin, 0, f"the file cannot be read ({error.strerror})")
    return Verification(check.origin, check.frontier.size)


class _Check:
    """One pass over an export: what was signed, and the tree as far as it was read."""

    def __init__(self, trusted: Sequence[PublicKey | Verifier] | None) -> None:
        self.origin = ""
        self.frontier = Frontier()
        self._trusted = trusted
        self._heads: dict[int, bytes] = {}
        self._good = 0

    def run(self, lines: Iterator[dict[str, Any]]) -> None:
        """Reads every line. Raises _Fault at the first that is not as it was signed."""
        self.origin, verifiers = _read_log_line(next(lines, {}), self._trusted)
        first = _read_heads(lines, self.origin, verifiers, self._heads)
        if not self._heads:
            raise _Fault("no signed head by a trusted key is in the file")
        signed = max(self._heads)
        for line in itertools.chain(() if first is None else (first,), lines):
            self.frontier = _read_entry(line, self.origin, self.frontier, signed)
            self._compare()
        if self.frontier.size < signed:
            missing = self.frontier.size
            raise _Fault(f"entries from {missing} on are missing: {signed} were signed", missing)

    def _compare(self) -> None:
        size = self.frontier.size
        if size not in self._heads:
            return
        if self._heads[size] != self.frontier.root():
            raise _Fault(
                f"entries {self._good} to {size - 1} are not those that were signed: at least one was altered",
                self._good,
            )
        self._good = size


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _entry_line(entry: rows.StoredEntry) -> str:
    """Answers the line with the record's own bytes; a record that is no JSON any more becomes null, and is found."""
    try:
        record = entry.record.decode()
        json.loads(record, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        record = "null"
    record = record.replace("\n", " ")  # between tokens: inside a string JSON has none
    return f'{{"type":"entry","index":{entry.index},"leaf_hash":"{entry.leaf.hex()}","record":{record}}}\n'


def _parsed(file: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for number, raw in enumerate(file, 1):
        try:
            value = json.loads(raw, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            raise _Fault(f"line {number} is not one JSON object") from None
        if not isinstance(value, dict):
            raise _Fault(f"line {number} is not one JSON object")
        yield value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name stands twice")
    return names


def _read_log_line(line: dict[str, Any], trusted: Sequence[PublicKey | Verifier] | None) -> tuple[str, list[Verifier]]:
    origin = line.get("origin")
    if line.get("type") != "log" or line.get("format") != FORMAT or not isinstance(origin, str):
        raise _Fault("the first line does not name a log of this format")
    try:
        if trusted is not None:
            return origin, [key if isinstance(key, Verifier) else Verifier(origin, key.raw) for key in trusted]
        return origin, [Verifier(origin, decode(key["jwk"]["x"])) for key in line["keys"]]
    except (NoteError, TokenError, KeyError, TypeError, AttributeError):
        raise _Fault("the first line holds no usable public key") from None


def _read_heads(
    lines: Iterator[dict[str, Any]], origin: str, verifiers: list[Verifier], heads: dict[int, bytes]
) -> dict[str, Any] | None:
    """Fills heads with what trusted keys signed, and answers the first line that is no checkpoint."""
    for line in lines:
        if line.get("type") != "checkpoint":
            return line
        note = line.get("note")
        try:
            checkpoint = Checkpoint.parse(open_note(note if isinstance(note, str) else "", verifiers))
        except UnknownKeyError:
            continue  # signed by a key from before: the others still have to cover every entry
        except NoteError as error:
            raise _Fault(f"a signed head is not genuine: {error}") from None
        if checkpoint.origin != origin:
            raise _Fault("a signed head is of another log")
        if heads.setdefault(checkpoint.size, checkpoint.root) != checkpoint.root:
            raise _Fault(f"two signed heads of size {checkpoint.size} differ: the log was forked")
    return None


def _read_entry(line: dict[str, Any], origin: str, frontier: Frontier, signed_size: int) -> Frontier:
    expected, record = frontier.size, line.get("record")
    if line.get("type") != "entry" or not isinstance(record, dict):
        raise _Fault(f"the line where entry {expected} belongs is no entry", expected)
    if line.get("index") != expected:
        raise _Fault(
            f"entry {expected} is missing or out of order: entry {line.get('index')} stands in its place", expected
        )
    if record.get("index") != expected or record.get("log") != origin:
        raise _Fault(f"entry {expected} was altered: its record names another place", expected)
    if expected >= signed_size:
        raise _Fault(f"entry {expected} was never signed: the log ends at {signed_size}", expected)
    try:
        leaf = leaf_hash(rfc8785.dumps(record))
    except (rfc8785.CanonicalizationError, RecursionError):
        raise _Fault(f"entry {expected} was altered: its record has no canonical form", expected) from None
    if line.get("leaf_hash") != leaf.hex():
        raise _Fault(f"entry {expected} was altered: its hash is another one", expected)
    return frontier.append(leaf)

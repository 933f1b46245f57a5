"""Verification of exported logs with the public key alone, line by line; names the first untrusted entry.

An entry line as written by export is hashed unchanged, without parsing its JSON: if its leaf belongs to the signed
tree, its bytes are those that were recorded. Any other line is parsed in full, so that the fault can be named.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import rfc8785
from phylactery_chassis.auth.jws import TokenError, decode
from phylactery_chassis.util.crypto import sha256

from phylactery_riskgate.audit.checkpoint import Checkpoint, NoteError, UnknownKeyError, Verifier, open_note, signed_by
from phylactery_riskgate.audit.commitments import ARGS_HASH, ARGUMENTS, bound_arguments
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.audit.merkle import Frontier, leaf_hash
from phylactery_riskgate.audit.sealing import commitment
from phylactery_riskgate.keys.ring import KeyState, PublicKey

FORMAT = 1
_SECTION, _INDEX = (re.compile(rb'\s*\{\s*"type"\s*:\s*"%s"' % word) for word in (b"log", b"export"))
_ENTRY, _RECORD, _END = b'{"type":"entry","index":%d,"leaf_hash":"', b'","record":{', b"}}\n"
_LEAF = re.compile("[0-9a-f]{64}")
_TELL_ARGUMENTS = (Kind.DECISION, Kind.ACCESS_EVALUATED)
"""Kinds of records that have the arguments of a bound call among their values."""
_HEX = 64
_BARE = frozenset({"hidden", "emptied"})
"""Types of lines that contain only a leaf hash."""
_RETENTION = b'"kind":"%s"' % Kind.RETENTION.encode()
_ADOPTED = b'"kind":"%s"' % Kind.HEADS_ADOPTED.encode()
_NO_HEAD = "no signed head by a trusted key is in the file"
_REVOKED_HEAD = "; one was signed by a key that has been revoked, which proves nothing: export the log again"

Trusted = Sequence[PublicKey | Verifier]
_Range: TypeAlias = tuple[int, int]
"""The first and last index of adjacent entries."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """A record that a log was adopted as it was in the database: its first ``size`` entries were signed unchecked.

    ``time_us`` is when, and ``index`` the place of the record.
    """

    log: str
    size: int
    time_us: int
    index: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of checking one log. ``first_bad`` is the index of the first entry that cannot be trusted."""

    origin: str
    entries: int
    problem: str = ""
    first_bad: int | None = None
    hidden: int = 0
    """Entries with only their leaf hash in the file: they are in the tree, but their content is not shown."""
    emptied: int = 0
    """Entries that a retention record lists as emptied; they do not count as hidden."""
    adopted: tuple[Adoption, ...] = ()
    """Adoptions on record in this log; what they cover need not be what was signed before them."""

    @property
    def ok(self) -> bool:
        """Return True if every entry is the one that was signed."""
        return not self.problem


@dataclass(frozen=True, slots=True)
class Report:
    """The result of checking an export: each log's verification, and the fault of the export as a whole."""

    logs: tuple[Verification, ...]
    fault: str = ""

    @property
    def ok(self) -> bool:
        """Return True if every entry of every log is the one that was signed, and no log is missing."""
        return not self.problem

    @property
    def entries(self) -> int:
        """Return the number of entries read."""
        return sum(log.entries for log in self.logs)

    @property
    def worst(self) -> Verification:
        """Return the first log with a problem, or the first log if there is none."""
        return next((log for log in self.logs if not log.ok), self.logs[0] if self.logs else Verification("", 0))

    @property
    def origin(self) -> str:
        """Return the name of the log with the problem, or of the first log."""
        return self.worst.origin

    @property
    def problem(self) -> str:
        """Return the problem, or an empty string."""
        return self.worst.problem or self.fault

    @property
    def first_bad(self) -> int | None:
        """Return the first entry of that log that cannot be trusted, or None if no entry is at fault."""
        return self.worst.first_bad


class _Fault(Exception):
    """A difference between the export and what was signed."""

    def __init__(self, problem: str, first_bad: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.first_bad = first_bad


def check_lines(lines: Iterable[bytes], trusted: Trusted | None = None, kept: Sequence[str] = ()) -> Report:
    """Check an export: signatures, heads, leaves, order, completeness, and values if it contains them.

    trusted are the keys to trust; without any, those in the file are used, which shows that it is intact but not who
    wrote it. kept are signed heads from elsewhere, which the logs have to extend; one that no trusted key signed proves
    nothing, and is a problem of its log.
    """
    fault, expected = "", None
    found: list[Verification] = []
    checks: list[_Check] = []
    for section in _sections(lines):
        first = next(section)
        if _INDEX.match(first) and not found:
            try:
                expected = _read_index(first, trusted)
            except _Fault as error:
                fault = error.problem
            if (first := next(section, b"")) == b"":
                continue
        check = _Check(trusted, kept)
        checks.append(check)
        found.append(_checked(check, itertools.chain((first,), section)))
    told = _told_ranges(check for check, one in zip(checks, found, strict=True) if one.ok)
    found = [_with_emptied(check, one, told.get(one.origin, [])) for check, one in zip(checks, found, strict=True)]
    return Report(tuple(found), fault or _missing(found, expected, kept))


def _checked(check: _Check, lines: Iterator[bytes]) -> Verification:
    try:
        check.run(lines)
    except _Fault as error:
        return Verification(check.origin, check.frontier.size, error.problem, error.first_bad)
    return Verification(check.origin, check.frontier.size, adopted=tuple(check.adopted))


def _told_ranges(checks: Iterable[_Check]) -> dict[str, list[_Range]]:
    """Return the entries of each log that retention records list, in order."""
    told: dict[str, list[_Range]] = {}
    for check in checks:
        for log, ranges in check.told.items():
            told.setdefault(log, []).extend(ranges)
    return {log: sorted(ranges) for log, ranges in told.items()}


def _with_emptied(check: _Check, one: Verification, told: Sequence[_Range]) -> Verification:
    """Return the result with the entries that retention emptied; any other empty entry is a problem."""
    emptied, first_bad = _covered(check.emptied, told)
    hidden, _ = _covered(check.hidden, told)
    of_file = sum(last - first + 1 for first, last in check.hidden)
    one = replace(one, hidden=of_file - hidden, emptied=emptied + hidden)
    if one.ok and first_bad is not None:
        problem = (
            f"entry {first_bad} was emptied without a retention record in this file: it was tampered with, or the "
            f"record is in a log that was not exported with this one"
        )
        return replace(one, problem=problem, first_bad=first_bad)
    return one


def _covered(runs: Sequence[_Range], told: Sequence[_Range]) -> tuple[int, int | None]:
    """Return how many entries of these ordered runs are covered, and the first that is not."""
    count, missed, at = 0, None, 0
    for first, last in runs:
        index = first
        while index <= last:
            while at < len(told) and told[at][1] < index:
                at += 1
            if at < len(told) and told[at][0] <= index:
                end = min(last, told[at][1])
                count += end - index + 1
            else:
                missed = index if missed is None else missed
                end = min(last, told[at][0] - 1) if at < len(told) else last
            index = end + 1
    return count, missed


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object of pairs. Raise ValueError if a name occurs twice."""
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name is repeated")
    return names


def index_text(issuer: str, sizes: Mapping[str, int]) -> str:
    """Return the signed text that lists the logs of an export."""
    return f"{issuer} export\n" + "".join(f"{name} {size}\n" for name, size in sizes.items())


def _missing(found: Sequence[Verification], expected: dict[str, int] | None, kept: Sequence[str]) -> str:
    """Return which log is missing, duplicated or not in the signed list, or an empty string."""
    names = [one.origin for one in found]
    doubled = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if not found:
        return "it contains no log"
    if doubled is not None:
        return f"the log '{doubled}' is in it twice"
    for name, size in (expected or {}).items():
        sizes = {one.origin: one.entries for one in found if one.ok}
        if name not in names:
            return f"the log '{name}' is missing: it was exported with the others"
        if sizes.get(name, size) != size:
            return f"the log '{name}' has {sizes[name]} entries and {size} were exported"
    if expected is not None and set(names) != set(expected):
        return f"the log '{min(set(names) - set(expected))}' was not exported with the others"
    heads = {note.partition("\n")[0] for note in kept}
    lost = sorted(heads - set(names))
    return f"the given signed head is of the log '{lost[0]}', which is not in it" if lost else ""


def _sections(lines: Iterable[bytes]) -> Iterator[Iterator[bytes]]:
    """Yield the part before the first log, then each log; unread lines of a section are skipped."""
    numbers = itertools.count(1)
    number = 0

    def section_of(line: bytes) -> int:
        nonlocal number
        if _SECTION.match(line):
            number = next(numbers)
        return number

    for _, group in itertools.groupby(lines, section_of):
        yield group


class _Check:
    """One pass over one log: the signed heads, and the tree of the entries read so far."""

    def __init__(self, trusted: Trusted | None, kept: Sequence[str]) -> None:
        self.origin = ""
        self.frontier = Frontier()
        self._trusted, self._kept = trusted, kept
        self._heads: dict[int, bytes] = {}
        self._revoked: list[Verifier] = []
        self._by_revoked = False
        self._good = 0
        self.hidden: list[_Range] = []
        self.emptied: list[_Range] = []
        self.told: dict[str, list[_Range]] = {}
        self.adopted: list[Adoption] = []

    def run(self, lines: Iterator[bytes]) -> None:
        """Read every line. Raise _Fault at the first that differs from what was signed."""
        self.origin, verifiers, self._revoked = _read_log_line(next(lines, b""), self._trusted)
        own = [note for note in self._kept if note.startswith(self.origin + "\n")]
        for note in own:
            if not self._add_head(note, verifiers):
                by = "a key that has been revoked" if signed_by(note, self._revoked) else "no key that is trusted here"
                raise _Fault(f"the given head of the log '{self.origin}' proves nothing: it is signed by {by}")
        first = self._read_heads(lines, verifiers)
        if not self._heads:
            raise _Fault(_NO_HEAD + (_REVOKED_HEAD if self._by_revoked else ""))
        signed = max(self._heads)
        log = b'"log":%s,' % json.dumps(self.origin).encode()
        for line in itertools.chain(() if first is None else (first,), lines):
            leaf = _quick_leaf(line, self.frontier.size, log) if self.frontier.size < signed else None
            if leaf is None:
                leaf, kind = _read_entry(line, self.origin, self.frontier.size, signed)
                if kind != "entry":
                    _extend(self.hidden if kind == "hidden" else self.emptied, self.frontier.size)
            if _RETENTION in line:
                self._read_retention(line)
            if _ADOPTED in line:
                self._read_adoption(line)
            self.frontier = self.frontier.append(leaf)
            self._compare()
        if self.frontier.size < signed:
            missing = self.frontier.size
            raise _Fault(f"entries from {missing} on are missing: {signed} were signed", missing)

    def _read_adoption(self, line: bytes) -> None:
        """Register an adoption, whose line was checked against its leaf: what it covers was signed unchecked."""
        record = _parsed(line, at := self.frontier.size).get("record")
        if not isinstance(record, dict) or record.get("kind") != Kind.HEADS_ADOPTED:
            return
        logs = record.get("logs")
        for log, head in (logs if isinstance(logs, dict) else {}).items():
            size = head.get("size") if isinstance(head, dict) else None
            if isinstance(size, int):
                self.adopted.append(Adoption(str(log), size, int(record.get("time_us") or 0), at))

    def _read_retention(self, line: bytes) -> None:
        """Register the ranges of a retention record, whose line was checked against its leaf."""
        record = _parsed(line, self.frontier.size).get("record")
        if not isinstance(record, dict) or record.get("kind") != Kind.RETENTION:
            return
        entries = record.get("entries")
        for log, ranges in (entries if isinstance(entries, dict) else {}).items():
            for one in ranges if isinstance(ranges, list) else ():
                if isinstance(one, list) and len(one) == 2 and all(isinstance(at, int) for at in one):  # noqa: PLR2004
                    self.told.setdefault(log, []).append((one[0], one[1]))

    def _read_heads(self, lines: Iterator[bytes], verifiers: list[Verifier]) -> bytes | None:
        """Read all heads, and return the first line that is not one."""
        for line in lines:
            if line.startswith(_ENTRY % 0):
                return line
            value = _parsed(line)
            if value.get("type") != "checkpoint":
                return line
            note = value.get("note")
            self._add_head(note if isinstance(note, str) else "", verifiers)
        return None

    def _add_head(self, note: str, verifiers: list[Verifier]) -> bool:
        """Register a head; return False if no trusted key signed it, so that it proves nothing."""
        try:
            checkpoint = Checkpoint.parse(open_note(note, verifiers))
        except UnknownKeyError:
            # signed with an earlier key: the other heads must still cover every entry
            self._by_revoked = self._by_revoked or signed_by(note, self._revoked)
            return False
        except NoteError as error:
            raise _Fault(f"a signed head is not genuine: {error}") from None
        if checkpoint.origin != self.origin:
            raise _Fault("a signed head is of another log")
        if self._heads.setdefault(checkpoint.size, checkpoint.root) != checkpoint.root:
            raise _Fault(f"two signed heads of size {checkpoint.size} differ: the log was forked")
        return True

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


def _quick_leaf(line: bytes, expected: int, log: bytes) -> bytes | None:
    """Return the leaf of an entry line exactly as export writes it, or None."""
    head = _ENTRY % expected
    begin = len(head) + _HEX
    if not (line.startswith(head) and line.startswith(_RECORD, begin) and line.endswith(_END)):
        return None
    record = line[begin + len(_RECORD) - 1 : 1 - len(_END)]
    leaf = hashlib.sha256(b"\x00" + record).digest()
    if line[len(head) : begin] != leaf.hex().encode() or b'"index":%d,' % expected not in record or log not in record:
        return None
    return leaf


def _extend(runs: list[_Range], index: int) -> None:
    """Add the next index to the runs of adjacent indexes."""
    if runs and runs[-1][1] == index - 1:
        runs[-1] = (runs[-1][0], index)
    else:
        runs.append((index, index))


def _read_entry(line: bytes, origin: str, expected: int, signed: int) -> tuple[bytes, str]:
    """Return the leaf of a fully parsed entry line, and its type: entry, hidden or emptied.

    Raise _Fault, which names the problem.
    """
    value = _parsed(line, expected)
    record, kind = value.get("record"), value.get("type")
    bare = isinstance(kind, str) and kind in _BARE
    if not bare and (kind != "entry" or not isinstance(record, dict)):
        raise _Fault(f"the line where entry {expected} belongs is not an entry", expected)
    index = value.get("index")
    if index != expected:
        other = f"entry {index}" if isinstance(index, int) else "something else"
        what = "is in it again" if isinstance(index, int) and index < expected else "is in its place"
        raise _Fault(f"entry {expected} is missing or out of order: {other} {what}", expected)
    if bare:
        return _hidden_leaf(value, expected, signed), str(kind)
    assert isinstance(record, dict), "otherwise it is not an entry"
    if record.get("log") != origin:
        raise _Fault(f"entry {expected} is foreign: its record is of another log", expected)
    if record.get("index") != expected:
        raise _Fault(f"entry {expected} was altered: its record names another place", expected)
    if expected >= signed:
        raise _Fault(f"entry {expected} was never signed: the log ends at {signed}", expected)
    try:
        leaf = leaf_hash(rfc8785.dumps(record))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError):
        raise _Fault(f"entry {expected} was altered: its record has no canonical form", expected) from None
    if value.get("leaf_hash") != leaf.hex():
        raise _Fault(f"entry {expected} was altered: its hash is another one", expected)
    problem = misfit(value["values"], record, expected) if "values" in value else ""
    if problem:
        raise _Fault(problem, expected)
    return leaf, "entry"


def _hidden_leaf(value: dict[str, Any], expected: int, signed: int) -> bytes:
    """Return the leaf of an entry that is not shown; the tree shows whether it is the signed one."""
    if expected >= signed:
        raise _Fault(f"entry {expected} was never signed: the log ends at {signed}", expected)
    given = value.get("leaf_hash")
    if set(value) != {"type", "index", "leaf_hash"} or not isinstance(given, str) or not _LEAF.fullmatch(given):
        raise _Fault(f"the line of entry {expected}, which is not shown, is damaged", expected)
    return bytes.fromhex(given)


def misfit(values: Any, record: dict[str, Any], index: int) -> str:
    """Return which value does not match its commitment, or that the arguments do not match their hash, or ''.

    The record of a refusal without a decision has only the hash.
    """
    commitments = record.get("values")
    known = commitments if isinstance(commitments, dict) else {}
    given: dict[str, Any] = values if isinstance(values, dict) else {"": None}
    for path, shown in given.items():
        try:
            fits = known.get(path) == commitment(decode(shown["salt"]), shown["value"])
        except (TypeError, KeyError, ValueError, rfc8785.CanonicalizationError, RecursionError):
            fits = False
        if not fits:
            return f"entry {index} was altered: its value at {path!r} does not match its commitment"
    whole = record.get("kind") in _TELL_ARGUMENTS and ARGS_HASH in given
    if whole and all(path in given for path in known if path.startswith(ARGUMENTS + "/")):
        arguments = bound_arguments({path: shown["value"] for path, shown in given.items()})
        if sha256(rfc8785.dumps(arguments)) != given[ARGS_HASH]["value"]:
            return f"entry {index} has arguments that do not match its hash at {ARGS_HASH!r}"
    return ""


def _parsed(line: bytes, index: int | None = None) -> dict[str, Any]:
    try:
        value = json.loads(line, object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _Fault("a line is not one JSON object", index)
    return value


def _read_index(line: bytes, trusted: Trusted | None) -> dict[str, int]:
    """Return the signed list of logs with their sizes. Raise _Fault."""
    value = _parsed(line)
    issuer, note = value.get("issuer"), value.get("note")
    try:
        if value.get("format") != FORMAT or not isinstance(issuer, str) or not isinstance(note, str):
            raise _Fault("the first line is not a list of logs in this format")
        text = open_note(note, _verifiers(issuer, value, trusted)[0])
    except NoteError as error:
        raise _Fault(f"the list of logs is not genuine: {error}") from None
    try:
        sizes = {name: int(size) for name, _, size in (line.rpartition(" ") for line in text.splitlines()[1:])}
    except ValueError:
        sizes = {}
    if text != index_text(issuer, sizes):  # its first line names the issuer, as does the line of a log of that name
        raise _Fault("the list of logs is a signed note about something else")
    return sizes


def _read_log_line(line: bytes, trusted: Trusted | None) -> tuple[str, list[Verifier], list[Verifier]]:
    value = _parsed(line) if line else {}
    origin = value.get("origin")
    if value.get("type") != "log" or value.get("format") != FORMAT or not isinstance(origin, str):
        raise _Fault("the first line does not name a log of this format")
    try:
        return origin, *_verifiers(origin, value, trusted)
    except NoteError:
        raise _Fault("the first line contains no usable public key") from None


def _verifiers(name: str, value: dict[str, Any], trusted: Trusted | None) -> tuple[list[Verifier], list[Verifier]]:
    """Return the valid and the revoked verifiers of a name, from the trusted keys or else from the line.

    Raise NoteError.
    """
    if trusted is not None:
        return verifiers_of(name, trusted)
    try:
        named = [(decode(key["jwk"]["x"]), key.get("state") == KeyState.REVOKED) for key in value["keys"]]
    except (TokenError, KeyError, TypeError, AttributeError):
        raise NoteError("no usable public key") from None
    return _parted(name, named)


def verifiers_of(name: str, trusted: Trusted) -> tuple[list[Verifier], list[Verifier]]:
    """Return the valid and the revoked verifiers of a log's name from trusted keys. Raise NoteError."""
    named = [(key.public_key, False) for key in trusted if isinstance(key, Verifier)]
    named += [(key.raw, key.state is KeyState.REVOKED) for key in trusted if not isinstance(key, Verifier)]
    return _parted(name, named)


def _parted(name: str, named: Sequence[tuple[bytes, bool]]) -> tuple[list[Verifier], list[Verifier]]:
    return (
        [Verifier(name, raw) for raw, revoked in named if not revoked],
        [Verifier(name, raw) for raw, revoked in named if revoked],
    )

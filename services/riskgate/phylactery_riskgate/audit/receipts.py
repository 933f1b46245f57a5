"""Receipts of decisions: records with their inclusion proofs and signed heads, checked with public keys alone.

A receipt is one JSON object: "type" and "format"; "of", the decision or the entry it was asked for; "entries", oldest
first, each with "log", "index", "hashes" (the audit path, hex, the leaf's sibling first), "record" as it was hashed,
and optionally "values" with their salts; "heads", a signed note for each log, of the tree that its proofs lead to; and
"left_out", the number of further refusals on record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785

from phylactery_riskgate.audit.checkpoint import Checkpoint, NoteError, open_note, signed_by
from phylactery_riskgate.audit.log import about_decision
from phylactery_riskgate.audit.merkle import leaf_hash, verify_inclusion
from phylactery_riskgate.audit.verify import Trusted, misfit, unique_names, verifiers_of

FORMAT = 1
_LINKS = ("decision_id", "evaluation_id", "approval_id", "counted_approval_id")
"""Fields of records that name the same decision, or the approval that it requested or counted."""


@dataclass(frozen=True, slots=True)
class ProvenEntry:
    """An entry of a receipt: its record's own bytes, its place, its audit path, and the values to show."""

    log: str
    index: int
    record: bytes
    hashes: Sequence[bytes]
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CheckedReceipt:
    """The result of checking a receipt: its records in order, or the problem."""

    of: str
    records: tuple[dict[str, Any], ...] = ()
    problem: str = ""
    left_out: int = 0


class _BadError(Exception):
    """What is wrong with a receipt."""


def receipt_text(of: str, entries: Iterable[ProvenEntry], notes: Iterable[str], left_out: int) -> str:
    """Return a receipt. The records are not encoded again: they are hashed as they are."""
    lines = []
    for one in entries:
        head: dict[str, Any] = {"log": one.log, "index": one.index, "hashes": [path.hex() for path in one.hashes]}
        if one.values:
            head["values"] = one.values
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
        lines.append(f'{text[:-1]},"record":{one.record.decode(errors="replace")}}}')
    begin = json.dumps({"type": "receipt", "format": FORMAT, "of": of, "left_out": left_out}, ensure_ascii=False)
    heads = json.dumps(list(notes), ensure_ascii=False)
    return f'{begin[:-1]},\n"heads":{heads},\n"entries":[\n' + ",\n".join(lines) + "\n]}\n"


def check_receipt(text: str, trusted: Trusted) -> CheckedReceipt:
    """Check a receipt with the keys to trust: signatures, proofs, values, and that its records belong together."""
    of = ""
    try:
        read = _parsed(text)
        of = read["of"]
        heads = dict(_head(note, trusted) for note in read["heads"])
        records = tuple(_record(entry, heads) for entry in read["entries"])
        _check_links(of, read["entries"], records)
    except _BadError as bad:
        return CheckedReceipt(of, problem=str(bad))
    return CheckedReceipt(of, records, left_out=read["left_out"])


def _parsed(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text, object_pairs_hook=unique_names)
    except (ValueError, RecursionError):
        raise _BadError("it is not one JSON object") from None
    if not isinstance(read, dict) or read.get("type") != "receipt" or read.get("format") != FORMAT:
        raise _BadError(f"it is no receipt of format {FORMAT}: `riskgate receipt get` prints one")
    shapes: dict[str, type] = {"of": str, "heads": list, "entries": list, "left_out": int}
    wrong = next((name for name, shape in shapes.items() if not isinstance(read.get(name), shape)), "")
    if wrong or not read["entries"]:
        raise _BadError(f"its {wrong or 'entries'} are missing or malformed")
    return read


def _head(note: Any, trusted: Trusted) -> tuple[str, Checkpoint]:
    name = note.partition("\n")[0] if isinstance(note, str) else ""
    try:
        good, revoked = verifiers_of(name, trusted)
        try:
            head = Checkpoint.parse(open_note(str(note), good))
        except NoteError as error:
            if signed_by(str(note), revoked):
                told = "its key has been revoked, which proves nothing; get the receipt again"
                raise _BadError(f"the head of the log '{name}' cannot be trusted: {told}") from None
            raise _BadError(f"the head of the log '{name}' cannot be trusted: {error}") from None
    except NoteError as error:
        raise _BadError(f"a head names no log: {error}") from None
    return head.origin, head


def _record(entry: Any, heads: Mapping[str, Checkpoint]) -> dict[str, Any]:
    """Return the record of an entry that is in the log, at the place that it and the entry name."""
    entry = entry if isinstance(entry, dict) else {}
    log, index, record, hashes = (entry.get(name) for name in ("log", "index", "record", "hashes"))
    whole = isinstance(index, int) and not isinstance(index, bool) and isinstance(record, dict)
    if not whole or not isinstance(log, str) or not isinstance(hashes, list):
        raise _BadError("an entry lacks its log, index, hashes or record")
    assert isinstance(record, dict) and isinstance(index, int)  # noqa: PT018 - for the type checker
    place = f"entry {index} of the log '{log}'"
    head = heads.get(log)
    if head is None:
        raise _BadError(f"{place} comes without a signed head")
    try:
        leaf, path = leaf_hash(rfc8785.dumps(record)), [bytes.fromhex(one) for one in hashes]
        proven = verify_inclusion(leaf, index, head.size, path, head.root)
    except (TypeError, ValueError, RecursionError, rfc8785.CanonicalizationError):
        proven = False
    if not proven:
        raise _BadError(f"{place} is not in the log of the signed head: it was altered, or belongs elsewhere")
    if (record.get("log"), record.get("index")) != (log, index):
        raise _BadError(f"{place} was altered: its record names another place")
    problem = misfit(entry["values"], record, index) if "values" in entry else ""
    if problem:
        raise _BadError(problem)
    return record


def _check_links(of: str, entries: Sequence[Any], records: Sequence[dict[str, Any]]) -> None:
    """Raise unless one record is about what the receipt names, and the others are linked to it."""
    places = [f"{one['log']}:{one['index']}" for one in entries]
    first = next((record for at, record in enumerate(records) if of in (about_decision(record), places[at])), None)
    if first is None:
        raise _BadError(f"none of its records is about '{of}'")
    known, rest = _links(first), [record for record in records if record is not first]
    while rest:
        near = [record for record in rest if known & _links(record)]
        if not near:
            raise _BadError(f"it holds a record that has nothing to do with '{of}'")
        known = known.union(*map(_links, near))
        rest = [record for record in rest if not known & _links(record)]


def _links(record: Mapping[str, Any]) -> set[str]:
    return {str(record[name]) for name in _LINKS if record.get(name)}

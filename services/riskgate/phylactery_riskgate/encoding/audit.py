"""AuditService's messages."""

from __future__ import annotations

from typing import Any

from phylactery.riskgate.v1 import audit_pb2, types_pb2
from phylactery_chassis.util.timestamps import from_timestamp, to_timestamp

from phylactery_riskgate.auditing import LogView, Proof, SeenEntry, SignedHead
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.erasure import Erased
from phylactery_riskgate.tails import Positions

_MAX_US = 253_402_300_800_000_000
"""The year 10000, where Timestamps end."""
_DECISIONS = {
    types_pb2.DECISION_ALLOW: Decision.ALLOW,
    types_pb2.DECISION_AUTH_REQUIRED: Decision.AUTH_REQUIRED,
    types_pb2.DECISION_BLOCKED: Decision.BLOCKED,
}


def filter_fields(message: audit_pb2.EntryFilter) -> dict[str, Any]:
    """Answers a filter as the edge reads it; a number that is no decision stays text, which the edge refuses."""
    decision = message.decision
    fields: dict[str, Any] = {
        "log": message.log,
        "kind": message.kind,
        "subject": message.subject,
        "run_id": message.run_id,
        "thread_id": message.thread_id,
        "tool": message.tool,
        "decision": None if decision == types_pb2.DECISION_UNSPECIFIED else _DECISIONS.get(decision, str(decision)),
    }
    if message.HasField("start_time"):
        fields["start_us"] = from_timestamp(message.start_time)
    if message.HasField("end_time"):
        fields["end_us"] = from_timestamp(message.end_time)
    return fields


def log(view: LogView) -> audit_pb2.AuditLog:
    """Encodes a log."""
    size = view.size
    return audit_pb2.AuditLog(
        name=size.name, size=size.size, signed_size=size.signed_size, vkeys=view.vkeys, own=view.own
    )


def entry(seen: SeenEntry) -> audit_pb2.AuditEntry:
    """Encodes an entry as its auditor sees it."""
    found, record = seen.entry.found, seen.entry.record
    time_us = record.get("time_us")
    if not isinstance(time_us, int) or not 0 <= time_us < _MAX_US:
        time_us = found.time_us  # somebody altered the record
    return audit_pb2.AuditEntry(
        log=found.log,
        index=found.stored.index,
        create_time=to_timestamp(time_us),
        kind=found.kind,
        record_json=found.stored.record.decode(errors="replace"),
        leaf_hash=found.stored.leaf,
        values=[
            audit_pb2.RecordValue(
                path=value.path, value_json=value.value_json, salt=value.salt, withheld=value.withheld
            )
            for value in seen.values
        ],
        values_erased=seen.erased,
    )


def tailed(told: SeenEntry | Positions) -> audit_pb2.TailEntriesResponse:
    """Encodes what a tail sends."""
    if isinstance(told, SeenEntry):
        return audit_pb2.TailEntriesResponse(entry=entry(told))
    positions = [audit_pb2.LogPosition(log=name, next_index=index) for name, index in sorted(told.items())]
    return audit_pb2.TailEntriesResponse(positions=positions)


def checkpoint(head: SignedHead) -> audit_pb2.GetCheckpointResponse:
    """Encodes a signed head."""
    return audit_pb2.GetCheckpointResponse(log=head.log, size=head.size, root_hash=head.root, note=head.note)


def inclusion(proof: Proof) -> audit_pb2.GetInclusionProofResponse:
    """Encodes a proof that an entry stands in a log."""
    return audit_pb2.GetInclusionProofResponse(
        log=proof.log,
        index=proof.first,
        tree_size=proof.size,
        leaf_hash=proof.leaf,
        hashes=proof.hashes,
        checkpoint=proof.note,
    )


def consistency(proof: Proof) -> audit_pb2.GetConsistencyProofResponse:
    """Encodes a proof that a log grew out of an earlier one."""
    return audit_pb2.GetConsistencyProofResponse(
        log=proof.log,
        first_size=proof.first,
        second_size=proof.size,
        hashes=proof.hashes,
        first_checkpoint=proof.first_note,
        second_checkpoint=proof.note,
    )


def erased(done: Erased) -> audit_pb2.EraseValuesResponse:
    """Encodes what was erased."""
    records = [audit_pb2.EntryReference(log=place.log, index=place.index) for place in done.records]
    return audit_pb2.EraseValuesResponse(erased=done.erased, kept_open=done.kept_open, records=records)

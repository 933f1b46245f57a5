"""AuditService: servicer and message mapping."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc, types_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import fields, from_message
from phylactery_chassis.util.timestamps import from_timestamp, to_timestamp

from phylactery_riskgate.audit.entries import SeenEntry, SignedHead
from phylactery_riskgate.audit.reader import AuditReader, LogView, Positions, Proof
from phylactery_riskgate.audit.requests import (
    CheckpointInput,
    ConsistencyInput,
    EraseInput,
    ExportInput,
    FilterInput,
    InclusionInput,
    ListEntriesInput,
    PositionInput,
    ReceiptInput,
    ReferenceInput,
    TailInput,
)
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.privacy.erasure import Erased

_MAX_US = 253_402_300_800_000_000
"""The year 10000, where Timestamps end."""
_DECISIONS = {
    types_pb2.DECISION_ALLOW: Decision.ALLOW,
    types_pb2.DECISION_AUTH_REQUIRED: Decision.AUTH_REQUIRED,
    types_pb2.DECISION_BLOCKED: Decision.BLOCKED,
}


def filter_fields(message: audit_pb2.EntryFilter) -> dict[str, Any]:
    """Return the fields of a filter for validation; an unknown decision number becomes text, which is refused."""
    decision = message.decision
    return fields(
        FilterInput,
        message,
        decision=None if decision == types_pb2.DECISION_UNSPECIFIED else _DECISIONS.get(decision, str(decision)),
        start_us=from_timestamp(message.start_time) if message.HasField("start_time") else 0,
        end_us=from_timestamp(message.end_time) if message.HasField("end_time") else 0,
    )


def log(view: LogView) -> audit_pb2.AuditLog:
    """Encode a log."""
    size = view.size
    return audit_pb2.AuditLog(
        name=size.name, size=size.size, signed_size=size.signed_size, vkeys=view.vkeys, own=view.own
    )


def entry(seen: SeenEntry) -> audit_pb2.AuditEntry:
    """Encode an entry as its auditor sees it."""
    found, record = seen.entry.found, seen.entry.record
    time_us = record.get("time_us")
    if not isinstance(time_us, int) or not 0 <= time_us < _MAX_US:
        time_us = found.time_us  # the record was altered
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
        revoke_time=to_timestamp(seen.revoke_us) if seen.revoke_us else None,
    )


def tailed(told: SeenEntry | Positions) -> audit_pb2.TailEntriesResponse:
    """Encode one message of a tail."""
    if isinstance(told, SeenEntry):
        return audit_pb2.TailEntriesResponse(entry=entry(told))
    positions = [audit_pb2.LogPosition(log=name, next_index=index) for name, index in sorted(told.items())]
    return audit_pb2.TailEntriesResponse(positions=positions)


def checkpoint(head: SignedHead) -> audit_pb2.GetCheckpointResponse:
    """Encode a signed head."""
    return audit_pb2.GetCheckpointResponse(log=head.log, size=head.size, root_hash=head.root, note=head.note)


def inclusion(proof: Proof) -> audit_pb2.GetInclusionProofResponse:
    """Encode a proof that an entry is in a log."""
    return audit_pb2.GetInclusionProofResponse(
        log=proof.log,
        index=proof.first,
        tree_size=proof.size,
        leaf_hash=proof.leaf,
        hashes=proof.hashes,
        checkpoint=proof.note,
    )


def consistency(proof: Proof) -> audit_pb2.GetConsistencyProofResponse:
    """Encode a proof that a log extends an earlier one."""
    return audit_pb2.GetConsistencyProofResponse(
        log=proof.log,
        first_size=proof.first,
        second_size=proof.size,
        hashes=proof.hashes,
        first_checkpoint=proof.first_note,
        second_checkpoint=proof.note,
    )


def erased(done: Erased) -> audit_pb2.EraseValuesResponse:
    """Encode the result of an erasure."""
    records = [audit_pb2.EntryReference(log=place.log, index=place.index) for place in done.records]
    return audit_pb2.EraseValuesResponse(erased=done.erased, kept_open=done.kept_open, records=records)


Context = aio.ServicerContext[Any, Any]


class AuditServicer(audit_pb2_grpc.AuditServiceServicer):
    """gRPC servicer of phylactery.riskgate.v1.AuditService."""

    def __init__(self, auditing: AuditReader) -> None:
        self._auditing = auditing

    async def ListLogs(self, _request: audit_pb2.ListLogsRequest, _context: Context) -> audit_pb2.ListLogsResponse:
        """List the logs."""
        logs = await self._auditing.logs(current_principal())
        return audit_pb2.ListLogsResponse(logs=[log(one) for one in logs])

    async def ListEntries(
        self, request: audit_pb2.ListEntriesRequest, _context: Context
    ) -> audit_pb2.ListEntriesResponse:
        """Return one page of entries."""
        asked = from_message(ListEntriesInput, request, filter=filter_fields(request.filter))
        page, token = await self._auditing.list_page(current_principal(), asked)
        return audit_pb2.ListEntriesResponse(entries=[entry(seen) for seen in page], next_page_token=token)

    async def TailEntries(
        self, request: audit_pb2.TailEntriesRequest, _context: Context
    ) -> AsyncIterator[audit_pb2.TailEntriesResponse]:
        """Stream entries as they come."""
        positions = [fields(PositionInput, one) for one in request.positions]
        asked = from_message(TailInput, request, filter=filter_fields(request.filter), positions=positions)
        async with contextlib.aclosing(self._auditing.tails.follow(current_principal(), asked)) as followed:
            async for told in followed:
                yield tailed(told)

    async def ExportLog(
        self, request: audit_pb2.ExportLogRequest, _context: Context
    ) -> AsyncIterator[audit_pb2.ExportLogResponse]:
        """Stream an export of one log."""
        asked = from_message(ExportInput, request)
        async with contextlib.aclosing(self._auditing.export(current_principal(), asked)) as parts:
            async for part in parts:
                yield audit_pb2.ExportLogResponse(data=part)

    async def GetCheckpoint(
        self, request: audit_pb2.GetCheckpointRequest, _context: Context
    ) -> audit_pb2.GetCheckpointResponse:
        """Return a signed head."""
        asked = from_message(CheckpointInput, request)
        return checkpoint(await self._auditing.checkpoint(current_principal(), asked))

    async def GetInclusionProof(
        self, request: audit_pb2.GetInclusionProofRequest, _context: Context
    ) -> audit_pb2.GetInclusionProofResponse:
        """Prove that an entry is in a log."""
        asked = from_message(InclusionInput, request)
        return inclusion(await self._auditing.inclusion(current_principal(), asked))

    async def GetConsistencyProof(
        self, request: audit_pb2.GetConsistencyProofRequest, _context: Context
    ) -> audit_pb2.GetConsistencyProofResponse:
        """Prove that a log of one size is a prefix of the log of a later size."""
        asked = from_message(ConsistencyInput, request)
        return consistency(await self._auditing.consistency(current_principal(), asked))

    async def GetReceipt(self, request: audit_pb2.GetReceiptRequest, _context: Context) -> audit_pb2.GetReceiptResponse:
        """Return the receipt of a decision."""
        of = request.WhichOneof("of") or ""
        asked = from_message(
            ReceiptInput,
            request,
            of=of,
            decision_id=request.decision_id if of == "decision_id" else None,
            approval_id=request.approval_id if of == "approval_id" else None,
            entry=fields(ReferenceInput, request.entry) if of == "entry" else None,
        )
        return audit_pb2.GetReceiptResponse(receipt=await self._auditing.receipt(current_principal(), asked))

    async def EraseValues(
        self, request: audit_pb2.EraseValuesRequest, _context: Context
    ) -> audit_pb2.EraseValuesResponse:
        """Erase argument values."""
        entries = [fields(ReferenceInput, one) for one in request.entries]
        wanted = filter_fields(request.filter) if request.HasField("filter") else None
        asked = from_message(EraseInput, request, entries=entries, filter=wanted)
        return erased(await self._auditing.erasure.erase(current_principal(), asked))

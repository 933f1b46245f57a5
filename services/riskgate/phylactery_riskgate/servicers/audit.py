"""Serves phylactery.riskgate.v1.AuditService."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.auditing import Auditing
from phylactery_riskgate.encoding import audit as encoding
from phylactery_riskgate.requests.audit import (
    CheckpointInput,
    ConsistencyInput,
    EraseInput,
    ExportInput,
    InclusionInput,
    ListEntriesInput,
    TailInput,
)

Context = aio.ServicerContext[Any, Any]


class AuditServicer(audit_pb2_grpc.AuditServiceServicer):
    """Serves phylactery.riskgate.v1.AuditService."""

    def __init__(self, auditing: Auditing) -> None:
        self._auditing = auditing

    async def ListLogs(self, _request: audit_pb2.ListLogsRequest, _context: Context) -> audit_pb2.ListLogsResponse:
        """Lists the logs there are."""
        logs = await self._auditing.logs(current_principal())
        return audit_pb2.ListLogsResponse(logs=[encoding.log(one) for one in logs])

    async def ListEntries(
        self, request: audit_pb2.ListEntriesRequest, _context: Context
    ) -> audit_pb2.ListEntriesResponse:
        """Answers one page of entries."""
        asked = parse(
            ListEntriesInput,
            {
                "filter": encoding.filter_fields(request.filter),
                "oldest_first": request.oldest_first,
                "include_values": request.include_values,
                "page_size": request.page_size,
                "page_token": request.page_token,
            },
        )
        page, token = await self._auditing.list_page(current_principal(), asked)
        return audit_pb2.ListEntriesResponse(entries=[encoding.entry(seen) for seen in page], next_page_token=token)

    async def TailEntries(
        self, request: audit_pb2.TailEntriesRequest, _context: Context
    ) -> AsyncIterator[audit_pb2.TailEntriesResponse]:
        """Sends entries as they come."""
        asked = parse(
            TailInput,
            {
                "filter": encoding.filter_fields(request.filter),
                "include_values": request.include_values,
                "positions": [{"log": one.log, "next_index": one.next_index} for one in request.positions],
                "from_beginning": request.from_beginning,
            },
        )
        async with contextlib.aclosing(self._auditing.tails.follow(current_principal(), asked)) as followed:
            async for told in followed:
                yield encoding.tailed(told)

    async def ExportLog(
        self, request: audit_pb2.ExportLogRequest, _context: Context
    ) -> AsyncIterator[audit_pb2.ExportLogResponse]:
        """Sends an export of one log."""
        asked = parse(ExportInput, {"log": request.log, "include_values": request.include_values})
        async with contextlib.aclosing(self._auditing.export(current_principal(), asked)) as parts:
            async for part in parts:
                yield audit_pb2.ExportLogResponse(data=part)

    async def GetCheckpoint(
        self, request: audit_pb2.GetCheckpointRequest, _context: Context
    ) -> audit_pb2.GetCheckpointResponse:
        """Answers a signed head."""
        asked = parse(CheckpointInput, {"log": request.log, "size": request.size})
        return encoding.checkpoint(await self._auditing.checkpoint(current_principal(), asked))

    async def GetInclusionProof(
        self, request: audit_pb2.GetInclusionProofRequest, _context: Context
    ) -> audit_pb2.GetInclusionProofResponse:
        """Proves that an entry stands in a log."""
        fields = {"log": request.log, "index": request.index, "tree_size": request.tree_size}
        asked = parse(InclusionInput, fields)
        return encoding.inclusion(await self._auditing.inclusion(current_principal(), asked))

    async def GetConsistencyProof(
        self, request: audit_pb2.GetConsistencyProofRequest, _context: Context
    ) -> audit_pb2.GetConsistencyProofResponse:
        """Proves that a log of one size is the beginning of itself at a later one."""
        fields = {"log": request.log, "first_size": request.first_size, "second_size": request.second_size}
        asked = parse(ConsistencyInput, fields)
        return encoding.consistency(await self._auditing.consistency(current_principal(), asked))

    async def EraseValues(
        self, request: audit_pb2.EraseValuesRequest, _context: Context
    ) -> audit_pb2.EraseValuesResponse:
        """Erases argument values."""
        asked = parse(
            EraseInput,
            {
                "entries": [{"log": one.log, "index": one.index} for one in request.entries],
                "filter": encoding.filter_fields(request.filter) if request.HasField("filter") else None,
                "reason": request.reason,
            },
        )
        return encoding.erased(await self._auditing.erasure.erase(current_principal(), asked))

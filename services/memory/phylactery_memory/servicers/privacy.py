"""Serves phylactery.memory.v1.PrivacyService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from phylactery.memory.v1 import privacy_pb2, privacy_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_memory.domain.outputs import OutputRules
from phylactery_memory.encoding.privacy import erasure_message, record_message
from phylactery_memory.export import Exports
from phylactery_memory.privacy import Privacy
from phylactery_memory.requests.privacy import EraseUserItem, GetErasureItem

Context = aio.ServicerContext[Any, Any]


class PrivacyServicer(privacy_pb2_grpc.PrivacyServiceServicer):
    """Serves phylactery.memory.v1.PrivacyService."""

    def __init__(self, privacy: Privacy, exports: Exports, rules: OutputRules) -> None:
        """Takes what erases, what exports, and the thresholds an output is described by."""
        self._privacy = privacy
        self._exports = exports
        self._rules = rules

    async def EraseUser(
        self, request: privacy_pb2.EraseUserRequest, _context: Context
    ) -> privacy_pb2.EraseUserResponse:
        """Removes everything held about a user."""
        asked = parse(EraseUserItem, {"subject": request.subject, "request_id": request.request_id})
        erasure = await self._privacy.erase(current_principal(), asked.subject, asked.request_id)
        return privacy_pb2.EraseUserResponse(erasure=erasure_message(erasure))

    async def GetErasure(
        self, request: privacy_pb2.GetErasureRequest, _context: Context
    ) -> privacy_pb2.GetErasureResponse:
        """Answers the record of an erasure."""
        asked = parse(GetErasureItem, {"erasure_id": request.erasure_id})
        erasure = await self._privacy.get(current_principal(), asked.erasure_id)
        return privacy_pb2.GetErasureResponse(erasure=erasure_message(erasure))

    async def ExportUser(
        self, _request: privacy_pb2.ExportUserRequest, _context: Context
    ) -> AsyncIterator[privacy_pb2.ExportUserResponse]:
        """Answers everything held about the caller."""
        async for record in self._exports.export(current_principal()):
            yield record_message(record, self._rules)

"""gRPC servicer of phylactery.memory.v1.PrivacyService."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as Proto
from grpc import aio
from phylactery.memory.v1 import privacy_pb2, privacy_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.erasure import erasures
from phylactery_chassis.erasure.erasures import EraseUserRequest, GetErasureRequest
from phylactery_chassis.rpc.validation import from_message
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.api.memories import memory_message
from phylactery_memory.api.outputs import output_message
from phylactery_memory.api.profile import field_message
from phylactery_memory.api.transcript import message_message
from phylactery_memory.memories.model import Memory
from phylactery_memory.outputs.model import OutputRecord, OutputRules
from phylactery_memory.privacy.export import End, Exports, Header, OutputBroken, OutputText, Record, ThreadMessage
from phylactery_memory.privacy.model import Erasure
from phylactery_memory.privacy.service import Privacy
from phylactery_memory.profile.model import ProfileField

_KIND = {
    Header: privacy_pb2.EXPORT_KIND_HEADER,
    ThreadMessage: privacy_pb2.EXPORT_KIND_MESSAGE,
    Memory: privacy_pb2.EXPORT_KIND_MEMORY,
    ProfileField: privacy_pb2.EXPORT_KIND_PROFILE_FIELD,
    OutputRecord: privacy_pb2.EXPORT_KIND_OUTPUT,
    OutputText: privacy_pb2.EXPORT_KIND_OUTPUT_TEXT,
    OutputBroken: privacy_pb2.EXPORT_KIND_OUTPUT_BROKEN,
    End: privacy_pb2.EXPORT_KIND_END,
}
_TYPE = {
    kind: privacy_pb2.ExportKind.Name(number).removeprefix("EXPORT_KIND_").lower() for kind, number in _KIND.items()
}
_TYPE_OF_NAME = {kind.__name__: name for kind, name in _TYPE.items()}


def erasure_message(erasure: Erasure) -> privacy_pb2.Erasure:
    """Return an erasure as its message."""
    return erasures.erasure_message(privacy_pb2.Erasure, privacy_pb2.ErasureCounts, erasure)


def record_message(record: Record, rules: OutputRules) -> privacy_pb2.ExportUserResponse:
    """Return one export record as its message."""
    kind = type(record)
    line = json.dumps({"type": _TYPE[kind], **_data(record, rules)}, ensure_ascii=False, separators=(",", ":"))
    return privacy_pb2.ExportUserResponse(kind=_KIND[kind], json=line)


def _data(record: Record, rules: OutputRules) -> dict[str, Any]:
    data: dict[str, Any] = {}
    match record:
        case Header():
            time = to_timestamp(record.time_us).ToJsonString()
            data = {"tenant": record.tenant, "subject": record.subject, "time": time}
        case ThreadMessage():
            data = {"thread_id": record.thread_id, **_fields(message_message(record.message))}
        case Memory():
            data = _fields(memory_message(record))
        case ProfileField():
            data = _fields(field_message(record))
        case OutputRecord():
            data = _fields(output_message(record, rules))
        case OutputText():
            data = {"pointer": record.pointer, "offset": record.part.offset, "text": record.part.text}
        case OutputBroken():
            data = {"pointer": record.pointer}
        case End():
            data = {"records": {_TYPE_OF_NAME[name]: count for name, count in sorted(record.counts.items())}}
    return data


def _fields(message: Proto) -> dict[str, Any]:
    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return found


Context = aio.ServicerContext[Any, Any]


class PrivacyServicer(privacy_pb2_grpc.PrivacyServiceServicer):
    """Serves phylactery.memory.v1.PrivacyService."""

    def __init__(self, privacy: Privacy, exports: Exports, rules: OutputRules) -> None:
        """``rules`` are the thresholds that outputs are described by."""
        self._privacy = privacy
        self._exports = exports
        self._rules = rules

    async def EraseUser(
        self, request: privacy_pb2.EraseUserRequest, _context: Context
    ) -> privacy_pb2.EraseUserResponse:
        """Remove everything held about a user."""
        asked = from_message(EraseUserRequest, request)
        erasure = await self._privacy.erase(current_principal(), asked.subject, asked.request_id)
        return privacy_pb2.EraseUserResponse(erasure=erasure_message(erasure))

    async def GetErasure(
        self, request: privacy_pb2.GetErasureRequest, _context: Context
    ) -> privacy_pb2.GetErasureResponse:
        """Return the record of an erasure."""
        asked = from_message(GetErasureRequest, request)
        erasure = await self._privacy.get(current_principal(), asked.erasure_id)
        return privacy_pb2.GetErasureResponse(erasure=erasure_message(erasure))

    async def ExportUser(
        self, _request: privacy_pb2.ExportUserRequest, _context: Context
    ) -> AsyncIterator[privacy_pb2.ExportUserResponse]:
        """Return everything held about the caller."""
        async for record in self._exports.export(current_principal()):
            yield record_message(record, self._rules)

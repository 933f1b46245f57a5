"""The client of RiskGate's audit log, as far as a person's privacy needs it."""

from __future__ import annotations

from typing import Any

from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc

from phylactery_client.channel import ServiceClient
from phylactery_client.decode import decode
from phylactery_client.erasure_results import ErasedValues


class AuditClient(ServiceClient):
    """Calls RiskGate's AuditService. Every method raises the PhylacteryError of its code; timeout is in seconds."""

    def __init__(self, target: str, **options: Any) -> None:
        """Takes what ServiceClient takes."""
        super().__init__(target, **options)
        self._audit = audit_pb2_grpc.AuditServiceStub(self._channel)

    async def erase_values(self, *, subject: str, reason: str, timeout: float | None = None) -> ErasedValues:
        """Erases the values of everything a user asked for, for ever; records and commitments stay. For operators."""
        request = audit_pb2.EraseValuesRequest(filter=audit_pb2.EntryFilter(subject=subject), reason=reason)
        return decode(ErasedValues, await self._call(self._audit.EraseValues, request, timeout))

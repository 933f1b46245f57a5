"""Serves phylactery.riskgate.v1.KeyService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import key_pb2, key_pb2_grpc
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.encoding import keys as encoding
from phylactery_riskgate.requests.keys import ListKeysInput
from phylactery_riskgate.service import RiskGate

Context = aio.ServicerContext[Any, Any]


class KeyServicer(key_pb2_grpc.KeyServiceServicer):
    """Serves phylactery.riskgate.v1.KeyService."""

    def __init__(self, riskgate: RiskGate) -> None:
        self._riskgate = riskgate

    async def ListKeys(self, request: key_pb2.ListKeysRequest, _context: Context) -> key_pb2.ListKeysResponse:
        """Answers every public key, the active one first, or that nothing changed."""
        asked = parse(ListKeysInput, {"etag": request.etag})
        return encoding.listed(self._riskgate.keys, self._riskgate.issuer, asked.etag)

"""PrivacyService: erasure of users."""

from __future__ import annotations

from phylactery.agent.v1 import privacy_pb2, privacy_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.erasure import erasures
from phylactery_chassis.erasure.erasures import EraseUserRequest, GetErasureRequest
from phylactery_chassis.rpc.validation import from_message

from phylactery_agent.api.mapping import Context
from phylactery_agent.runtime.privacy.erase_user import Privacy
from phylactery_agent.runtime.privacy.erasure_store import Erasure


class PrivacyServicer(privacy_pb2_grpc.PrivacyServiceServicer):
    """phylactery.agent.v1.PrivacyService."""

    def __init__(self, privacy: Privacy) -> None:
        self._privacy = privacy

    async def EraseUser(
        self, request: privacy_pb2.EraseUserRequest, _context: Context
    ) -> privacy_pb2.EraseUserResponse:
        """Remove everything stored about a user."""
        wanted = from_message(EraseUserRequest, request)
        erasure = await self._privacy.erase(current_principal(), wanted.subject, wanted.request_id)
        return privacy_pb2.EraseUserResponse(erasure=erasure_message(erasure))

    async def GetErasure(
        self, request: privacy_pb2.GetErasureRequest, _context: Context
    ) -> privacy_pb2.GetErasureResponse:
        """Return the record of an erasure."""
        erasure = await self._privacy.get(current_principal(), from_message(GetErasureRequest, request).erasure_id)
        return privacy_pb2.GetErasureResponse(erasure=erasure_message(erasure))


def erasure_message(erasure: Erasure) -> privacy_pb2.Erasure:
    """Return the record of an erasure."""
    return erasures.erasure_message(privacy_pb2.Erasure, privacy_pb2.ErasureCounts, erasure)

"""RiskGate's catalog over gRPC, asked for by the agent itself: it is the same for every tenant."""

from __future__ import annotations

from typing import Final

import grpc
from grpc import aio
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.rpc.channel import call_metadata

from phylactery_agent.adapters.riskgate import failure_of
from phylactery_agent.ports import CatalogEntry, CatalogView

_ITSELF: Final = Principal("phylactery-agent", "phylactery-agent", frozenset())
"""A delegate of every tenant has to name somebody, and no user is served here."""


class CatalogAdapter:
    """ports.ToolCatalog."""

    def __init__(self, channel: aio.Channel) -> None:
        self._policies = policy_pb2_grpc.PolicyServiceStub(channel)
        self._named = False

    async def catalog(self, known_hash: str) -> CatalogView | None:
        """Answers the catalog, None while the bundle of known_hash decides."""
        answer = await self._asked(policy_pb2.ListCatalogToolsRequest(known_hash=known_hash))
        if answer.not_modified:
            return None
        tools = {tool.name: CatalogEntry(tool.version, tool.schema_hash) for tool in answer.tools}
        return CatalogView(answer.bundle_revision, answer.bundle_hash, tools)

    async def _asked(self, request: policy_pb2.ListCatalogToolsRequest) -> policy_pb2.ListCatalogToolsResponse:
        """Asks as whoever the token stands for; one that stands for everybody names the agent."""
        try:
            return await self._policies.ListCatalogTools(request, metadata=self._metadata())
        except aio.AioRpcError as error:
            if self._named or error.code() is not grpc.StatusCode.UNAUTHENTICATED:
                raise failure_of(error) from error
        self._named = True
        try:
            return await self._policies.ListCatalogTools(request, metadata=self._metadata())
        except aio.AioRpcError as error:
            self._named = False
            raise failure_of(error) from error

    def _metadata(self) -> aio.Metadata:
        return aio.Metadata(*call_metadata(_ITSELF)) if self._named else aio.Metadata()

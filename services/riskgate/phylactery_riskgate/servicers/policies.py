"""Serves phylactery.riskgate.v1.PolicyService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.catalog_list import list_catalog
from phylactery_riskgate.encoding import policies as encoding
from phylactery_riskgate.live import LiveBundle
from phylactery_riskgate.policies import Policies
from phylactery_riskgate.replay import Replays
from phylactery_riskgate.requests.policies import (
    ActivateInput,
    CatalogInput,
    HistoryInput,
    ReplayInput,
    RollbackInput,
    ShowInput,
    ValidateInput,
)

_HISTORY = 50
Context = aio.ServicerContext[Any, Any]


class PolicyServicer(policy_pb2_grpc.PolicyServiceServicer):
    """Serves phylactery.riskgate.v1.PolicyService."""

    def __init__(self, policies: Policies, replays: Replays, live: LiveBundle) -> None:
        self._policies, self._replays, self._live = policies, replays, live

    async def GetBundle(self, request: policy_pb2.GetBundleRequest, _context: Context) -> policy_pb2.GetBundleResponse:
        """Answers the bundle that decides."""
        asked = parse(ShowInput, {"hash": request.hash})
        seen = await self._policies.show(current_principal(), asked.hash)
        return encoding.shown(seen, with_files=request.with_files)

    async def ValidateBundle(
        self, request: policy_pb2.ValidateBundleRequest, _context: Context
    ) -> policy_pb2.ValidateBundleResponse:
        """Checks a bundle and activates nothing."""
        asked = parse(ValidateInput, {"files": encoding.file_fields(request.files)})
        return encoding.validated(*await self._policies.validate(current_principal(), asked.parts))

    async def ActivateBundle(
        self, request: policy_pb2.ActivateBundleRequest, _context: Context
    ) -> policy_pb2.ActivateBundleResponse:
        """Lets a bundle decide from the next request on, or ends the shadow."""
        fields = {
            "files": encoding.file_fields(request.files),
            "shadow": request.shadow,
            "skip_cases": request.skip_cases,
        }
        asked = parse(ActivateInput, fields)
        if asked.shadow and not asked.files:
            return encoding.activated(
                await self._policies.end_shadow(current_principal()), self._policies.follow_seconds
            )
        done = await self._policies.activate(
            current_principal(), asked.parts, shadow=asked.shadow, skip_cases=asked.skip_cases
        )
        return encoding.activated(done, self._policies.follow_seconds)

    async def RollbackBundle(
        self, request: policy_pb2.RollbackBundleRequest, _context: Context
    ) -> policy_pb2.RollbackBundleResponse:
        """Let an earlier bundle decide again."""
        asked = parse(RollbackInput, {"hash": request.hash})
        done = await self._policies.roll_back(current_principal(), asked.hash)
        return encoding.rolled_back(done, self._policies.follow_seconds)

    async def ListActivations(
        self, request: policy_pb2.ListActivationsRequest, _context: Context
    ) -> policy_pb2.ListActivationsResponse:
        """List which bundle became active when, and by whom."""
        asked = parse(HistoryInput, {"limit": request.limit})
        found = await self._policies.history(current_principal(), asked.limit or _HISTORY)
        return policy_pb2.ListActivationsResponse(activations=[encoding.activation(one) for one in found])

    async def ReplayBundle(
        self, request: policy_pb2.ReplayBundleRequest, _context: Context
    ) -> AsyncIterator[policy_pb2.ReplayBundleResponse]:
        """Streams what another bundle would decide otherwise."""
        asked = parse(
            ReplayInput,
            {
                "files": encoding.file_fields(request.files),
                "since_us": encoding.microseconds(request),
                "limit": request.limit,
            },
        )
        found = self._replays.run(current_principal(), asked.parts, since_us=asked.since_us, limit=asked.limit)
        async for one in found:
            yield encoding.replayed(one)

    async def ListCatalogTools(
        self, request: policy_pb2.ListCatalogToolsRequest, _context: Context
    ) -> policy_pb2.ListCatalogToolsResponse:
        """Answers the tools calls are held against."""
        asked = parse(CatalogInput, {"known_hash": request.known_hash})
        return encoding.catalog(await list_catalog(self._live, asked.known_hash))

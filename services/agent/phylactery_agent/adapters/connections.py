"""The agent's two gRPC channels, and the handles created from them."""

from __future__ import annotations

from grpc import aio

from phylactery_agent.adapters.memory import MemoriesAdapter, MemoryConnection, OutputsAdapter, TranscriptAdapter
from phylactery_agent.adapters.riskgate import CatalogAdapter, InspectionAdapter, RiskGateAdapter, RiskGateConnection
from phylactery_agent.ports import Inspector, Outputs
from phylactery_agent.ports.services import Approvals, Level, TaskGate, Transcript, UserMemory
from phylactery_agent.runtime.storage.records import Owner


class GrpcServices:
    """Implementation of ports.services.Services over gRPC."""

    def __init__(self, riskgate: aio.Channel, memory: aio.Channel) -> None:
        self._channels = (riskgate, memory)
        self.catalog = CatalogAdapter(riskgate)
        self._riskgate, self._memory = RiskGateConnection(riskgate), MemoryConnection(memory)

    def gate(self, owner: Owner, level: Level | None = None) -> TaskGate:
        """Return RiskGate on behalf of the user."""
        return RiskGateAdapter(self._riskgate, owner, level)

    def approvals(self, owner: Owner) -> Approvals:
        """Return the user's approvals at RiskGate."""
        return RiskGateAdapter(self._riskgate, owner)

    def inspector(self, owner: Owner) -> Inspector:
        """Return RiskGate's inspection of text on behalf of the user."""
        return InspectionAdapter(self._riskgate, owner)

    def outputs(self, owner: Owner) -> Outputs:
        """Return memory's outputs on behalf of the user."""
        return OutputsAdapter(self._memory, owner)

    def transcript(self, owner: Owner) -> Transcript:
        """Return memory's transcript on behalf of the user."""
        return TranscriptAdapter(self._memory, owner)

    def memories(self, owner: Owner) -> UserMemory:
        """Return the user's memories."""
        return MemoriesAdapter(self._memory, owner)

    async def close(self) -> None:
        """Close both channels."""
        for channel in self._channels:
            await channel.close()

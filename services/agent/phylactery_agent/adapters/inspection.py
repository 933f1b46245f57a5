"""RiskGate's Inspect over gRPC: one call for a text without secrets, a second where something is to be redacted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, cast

from grpc import aio
from phylactery.riskgate.v1 import inspection_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.rpc.channel import call_metadata

from phylactery_agent.adapters.riskgate import RiskGateConnection, answered
from phylactery_agent.ports import GateRefusedError, Inspected
from phylactery_agent.runtime.model import Owner

_SECRET: Final = inspection_pb2.FINDING_CATEGORY_SECRET
_UNNAMED: Final = "unnamed"
_Kind: TypeAlias = "inspection_pb2.FindingKind.ValueType"
_SECRETS: Final = frozenset(range(inspection_pb2.FINDING_KIND_PRIVATE_KEY, inspection_pb2.FINDING_KIND_IBAN))
"""The kinds that open something, as the contract numbers them; one that is found and newer is redacted as well."""


class InspectionAdapter:
    """ports.Inspector for one end user."""

    def __init__(self, connection: RiskGateConnection, owner: Owner) -> None:
        self._inspections = connection.inspections
        self._metadata = aio.Metadata(*call_metadata(Principal(owner.user_id, owner.tenant, frozenset())))

    async def inspect(self, text: str) -> Inspected:
        """Looks at a text. Personal data is named and stays; secrets are replaced by RiskGate's own placeholders."""
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair has no form on the wire
        if not text:
            return Inspected(text)
        looked = await self._inspect(text, inspection_pb2.InspectOptions())
        if looked.total_findings > len(looked.findings):
            raise GateRefusedError("TOO_MANY_FINDINGS", "the text holds more findings than one answer names")
        secret = {finding.kind for finding in looked.findings if finding.category == _SECRET}
        personal = {finding.kind for finding in looked.findings if finding.category != _SECRET}
        if not secret:
            return Inspected(text, personal=_names(personal))
        return Inspected(await self._redacted(text, secret), _names(secret), _names(personal))

    async def _redacted(self, text: str, found: Iterable[int]) -> str:
        """Answers the text without secrets; RiskGate looks again at what is left, until it finds none."""
        kinds = [cast("_Kind", kind) for kind in sorted(_SECRETS | set(found))]
        options = inspection_pb2.InspectOptions(kinds=kinds, want_redacted=True)
        return (await self._inspect(text, options)).redacted_text

    async def _inspect(self, text: str, options: inspection_pb2.InspectOptions) -> inspection_pb2.Inspection:
        request = inspection_pb2.InspectRequest(text=text, options=options)
        answer = await answered(self._inspections.Inspect(request, metadata=self._metadata))
        return answer.inspection


def _names(kinds: Iterable[int]) -> tuple[str, ...]:
    """Answers the kinds' names; one that this agent does not know yet still counts."""
    known = inspection_pb2.FindingKind.values()
    return tuple(
        sorted(
            inspection_pb2.FindingKind.Name(cast("_Kind", kind)).removeprefix("FINDING_KIND_").lower()
            if kind in known
            else _UNNAMED
            for kind in kinds
        )
    )

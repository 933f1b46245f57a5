"""PolicyService: servicer and message mapping."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable
from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc, types_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import fields, from_message
from phylactery_chassis.util.timestamps import from_timestamp, to_timestamp

from phylactery_riskgate.api.mapping import risk
from phylactery_riskgate.bundles.journal import Activated
from phylactery_riskgate.bundles.lifecycle import BundleView, Policies
from phylactery_riskgate.bundles.live import CatalogView, LiveBundle, list_catalog
from phylactery_riskgate.bundles.requests import (
    ActivateInput,
    CatalogInput,
    FileInput,
    HistoryInput,
    ReplayInput,
    RollbackInput,
    ShowInput,
    ValidateInput,
)
from phylactery_riskgate.decisions.replay import Flip, Outlook, Replays, Summary
from phylactery_riskgate.domain.bundle.report import BundleReport, Severity
from phylactery_riskgate.store.bundles import Activation, BundleHead, Slot

_SOURCES = {
    "": policy_pb2.BUNDLE_SOURCE_UNSPECIFIED,
    "folder": policy_pb2.BUNDLE_SOURCE_FOLDER,
    "activation": policy_pb2.BUNDLE_SOURCE_ACTIVATION,
    "rollback": policy_pb2.BUNDLE_SOURCE_ROLLBACK,
}
_SEVERITIES = {
    Severity.ERROR: policy_pb2.FINDING_SEVERITY_ERROR,
    Severity.WARNING: policy_pb2.FINDING_SEVERITY_WARNING,
    Severity.CASE: policy_pb2.FINDING_SEVERITY_CASE,
    Severity.NOTE: policy_pb2.FINDING_SEVERITY_NOTE,
}


def shown(view: BundleView, *, with_files: bool) -> policy_pb2.GetBundleResponse:
    """Encode the live and shadow bundles."""
    response = policy_pb2.GetBundleResponse(
        live=bundle_info(view.live),
        shadow_decisions=view.decided,
        shadow_differences=view.differed,
        shadow_skipped=view.skipped,
    )
    if view.shadow is not None:
        response.shadow.CopyFrom(bundle_info(view.shadow))
    if view.last_fault is not None:
        fault = view.last_fault
        response.last_fault.message, response.last_fault.revision = fault.message, fault.revision
        response.last_fault.fault_time.CopyFrom(to_timestamp(fault.time_us))
    if with_files:
        names = sorted(view.files)
        response.files.extend(policy_pb2.BundleFile(name=one, content=view.files[one].encode()) for one in names)
        response.withheld.extend(view.withheld)
    return response


def catalog(view: CatalogView) -> policy_pb2.ListCatalogToolsResponse:
    """Encode the tools of the live bundle."""
    return policy_pb2.ListCatalogToolsResponse(
        bundle_revision=view.revision,
        bundle_hash=view.hash,
        not_modified=view.tools is None,
        tools=[
            policy_pb2.CatalogTool(
                name=tool.name,
                version=tool.version,
                schema_hash=tool.schema_hash,
                risk=risk(tool.risk),
                level=tool.level,
            )
            for tool in view.tools or ()
        ],
    )


def file_fields(files: Iterable[policy_pb2.BundleFile]) -> list[dict[str, Any]]:
    """Return the fields of files for validation."""
    return [fields(FileInput, file) for file in files]


def bundle_info(head: BundleHead) -> policy_pb2.BundleInfo:
    """Encode the head of a slot."""
    return policy_pb2.BundleInfo(
        revision=head.revision,
        hash=head.hash,
        source=_SOURCES[head.source],
        activate_time=to_timestamp(head.activate_us),
        activated_by=head.activated_by,
        signed_by=head.signed_by,
    )


def rolled_back(done: Activated, follow_seconds: float) -> policy_pb2.RollbackBundleResponse:
    """Encode the result of a rollback, and how long other processes may take to follow."""
    response = policy_pb2.RollbackBundleResponse(bundle=bundle_info(done.head), already_active=done.place is None)
    response.follow_within.FromMilliseconds(math.ceil(follow_seconds * 1_000))
    if done.place is not None:
        response.audit_log, response.audit_index = done.place.log, done.place.index
    return response


def activation(one: Activation) -> policy_pb2.Activation:
    """Encode one activation in a slot."""
    return policy_pb2.Activation(
        bundle=bundle_info(one.head),
        shadow=one.slot is Slot.SHADOW,
        activated_by_tenant=one.tenant,
        number=one.head.number,
    )


def activated(done: Activated, follow_seconds: float) -> policy_pb2.ActivateBundleResponse:
    """Encode the result of an activation, and how long other processes may take to follow."""
    response = policy_pb2.ActivateBundleResponse(already_active=done.place is None)
    response.follow_within.FromMilliseconds(math.ceil(follow_seconds * 1_000))
    if done.head.revision:
        response.bundle.CopyFrom(bundle_info(done.head))
    if done.place is not None:
        response.audit_log, response.audit_index = done.place.log, done.place.index
    return response


def validated(bundle_hash: str, report: BundleReport) -> policy_pb2.ValidateBundleResponse:
    """Encode the findings of a bundle."""
    return policy_pb2.ValidateBundleResponse(
        valid=report.bundle is not None,
        revision=report.bundle.revision if report.bundle else 0,
        hash=bundle_hash,
        findings=[
            policy_pb2.BundleFinding(
                severity=_SEVERITIES[one.severity], file=one.file, line=one.line, message=one.message
            )
            for one in report.findings
        ],
    )


def replayed(one: Flip | Summary) -> policy_pb2.ReplayBundleResponse:
    """Encode a call whose decision differs, or the summary."""
    if isinstance(one, Flip):
        flip = policy_pb2.ReplayFlip(
            decision_id=one.decision_id,
            tool=one.tool,
            decide_time=to_timestamp(one.time_us),
            before=_outlook(one.before),
            after=_outlook(one.after),
            policy_ids=one.policy_ids,
            widens=one.widens,
        )
        return policy_pb2.ReplayBundleResponse(flip=flip)
    summary = policy_pb2.ReplaySummary(
        revision=one.revision,
        replayed=one.replayed,
        flipped=one.flipped,
        erased=one.erased,
        unbound=one.unbound,
        frozen=one.frozen,
        counts=[
            policy_pb2.ReplayCount(before=_outlook(before), after=_outlook(after), calls=calls)
            for (before, after), calls in one.changes.most_common()
        ],
    )
    return policy_pb2.ReplayBundleResponse(summary=summary)


def _outlook(outlook: Outlook) -> policy_pb2.Outlook:
    decision, approval_class = outlook
    return policy_pb2.Outlook(decision=types_pb2.Decision.Value(f"DECISION_{decision}"), approval_class=approval_class)


_HISTORY = 50
Context = aio.ServicerContext[Any, Any]


class PolicyServicer(policy_pb2_grpc.PolicyServiceServicer):
    """gRPC servicer of phylactery.riskgate.v1.PolicyService."""

    def __init__(self, policies: Policies, replays: Replays, live: LiveBundle) -> None:
        self._policies, self._replays, self._live = policies, replays, live

    async def GetBundle(self, request: policy_pb2.GetBundleRequest, _context: Context) -> policy_pb2.GetBundleResponse:
        """Return the live bundle."""
        asked = from_message(ShowInput, request)
        seen = await self._policies.show(current_principal(), asked.hash)
        return shown(seen, with_files=request.with_files)

    async def ValidateBundle(
        self, request: policy_pb2.ValidateBundleRequest, _context: Context
    ) -> policy_pb2.ValidateBundleResponse:
        """Check a bundle without activating it."""
        asked = from_message(ValidateInput, request, files=file_fields(request.files))
        return validated(*await self._policies.validate(current_principal(), asked.parts))

    async def ActivateBundle(
        self, request: policy_pb2.ActivateBundleRequest, _context: Context
    ) -> policy_pb2.ActivateBundleResponse:
        """Activate a bundle for new requests, or end the shadow."""
        asked = from_message(ActivateInput, request, files=file_fields(request.files))
        if asked.shadow and not asked.files:
            return activated(await self._policies.end_shadow(current_principal()), self._policies.follow_seconds)
        done = await self._policies.activate(
            current_principal(), asked.parts, shadow=asked.shadow, skip_cases=asked.skip_cases
        )
        return activated(done, self._policies.follow_seconds)

    async def RollbackBundle(
        self, request: policy_pb2.RollbackBundleRequest, _context: Context
    ) -> policy_pb2.RollbackBundleResponse:
        """Reactivate an earlier bundle."""
        asked = from_message(RollbackInput, request)
        done = await self._policies.roll_back(current_principal(), asked.hash)
        return rolled_back(done, self._policies.follow_seconds)

    async def ListActivations(
        self, request: policy_pb2.ListActivationsRequest, _context: Context
    ) -> policy_pb2.ListActivationsResponse:
        """List the activations with time and person."""
        asked = from_message(HistoryInput, request)
        found = await self._policies.history(current_principal(), asked.limit or _HISTORY)
        return policy_pb2.ListActivationsResponse(activations=[activation(one) for one in found])

    async def ReplayBundle(
        self, request: policy_pb2.ReplayBundleRequest, _context: Context
    ) -> AsyncIterator[policy_pb2.ReplayBundleResponse]:
        """Stream the decisions that another bundle would make differently."""
        since_us = from_timestamp(request.since_time) if request.HasField("since_time") else 0
        asked = from_message(ReplayInput, request, files=file_fields(request.files), since_us=since_us)
        found = self._replays.run(current_principal(), asked.parts, since_us=asked.since_us, limit=asked.limit)
        async for one in found:
            yield replayed(one)

    async def ListCatalogTools(
        self, request: policy_pb2.ListCatalogToolsRequest, _context: Context
    ) -> policy_pb2.ListCatalogToolsResponse:
        """Return the tools of the live catalog."""
        asked = from_message(CatalogInput, request)
        return catalog(await list_catalog(self._live, asked.known_hash))

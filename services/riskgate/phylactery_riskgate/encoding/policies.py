"""PolicyService's messages."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from phylactery.riskgate.v1 import policy_pb2, types_pb2
from phylactery_chassis.util.timestamps import from_timestamp, to_timestamp

from phylactery_riskgate.bundle_records import Activated
from phylactery_riskgate.catalog_list import CatalogView
from phylactery_riskgate.domain.bundle_report import BundleReport, Severity
from phylactery_riskgate.encoding.types import risk
from phylactery_riskgate.policies import BundleView
from phylactery_riskgate.recalling import Outlook
from phylactery_riskgate.replay import Flip, Summary
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
    """Encodes what decides."""
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
    """Encodes the tools of the bundle that decides."""
    return policy_pb2.ListCatalogToolsResponse(
        bundle_revision=view.revision,
        bundle_hash=view.hash,
        not_modified=view.tools is None,
        tools=[
            policy_pb2.CatalogTool(
                name=tool.name, version=tool.version, schema_hash=tool.schema_hash, risk=risk(tool.risk)
            )
            for tool in view.tools or ()
        ],
    )


def file_fields(files: Iterable[policy_pb2.BundleFile]) -> list[dict[str, Any]]:
    """Answers files as the edge reads them."""
    return [{"name": file.name, "content": file.content} for file in files]


def microseconds(request: policy_pb2.ReplayBundleRequest) -> int:
    """Answers since_time in microseconds, 0 where it is unset."""
    return from_timestamp(request.since_time) if request.HasField("since_time") else 0


def bundle_info(head: BundleHead) -> policy_pb2.BundleInfo:
    """Encodes the head of a slot."""
    return policy_pb2.BundleInfo(
        revision=head.revision,
        hash=head.hash,
        source=_SOURCES[head.source],
        activate_time=to_timestamp(head.activate_us),
        activated_by=head.activated_by,
        signed_by=head.signed_by,
    )


def rolled_back(done: Activated, follow_seconds: float) -> policy_pb2.RollbackBundleResponse:
    """Encode what a rollback did, and how long others may take to follow."""
    response = policy_pb2.RollbackBundleResponse(bundle=bundle_info(done.head), already_active=done.place is None)
    response.follow_within.FromMilliseconds(math.ceil(follow_seconds * 1_000))
    if done.place is not None:
        response.audit_log, response.audit_index = done.place.log, done.place.index
    return response


def activation(one: Activation) -> policy_pb2.Activation:
    """Encode one move of a slot."""
    return policy_pb2.Activation(
        bundle=bundle_info(one.head),
        shadow=one.slot is Slot.SHADOW,
        activated_by_tenant=one.tenant,
        number=one.head.number,
    )


def activated(done: Activated, follow_seconds: float) -> policy_pb2.ActivateBundleResponse:
    """Encodes what an activation did, and how long others may take to follow."""
    response = policy_pb2.ActivateBundleResponse(already_active=done.place is None)
    response.follow_within.FromMilliseconds(math.ceil(follow_seconds * 1_000))
    if done.head.revision:
        response.bundle.CopyFrom(bundle_info(done.head))
    if done.place is not None:
        response.audit_log, response.audit_index = done.place.log, done.place.index
    return response


def validated(bundle_hash: str, report: BundleReport) -> policy_pb2.ValidateBundleResponse:
    """Encodes what was found in a bundle."""
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
    """Encodes a call that changed, or the end."""
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

"""Proposed calls: conversion for the engine, fingerprints, and their fields in records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.util.crypto import sha256

from phylactery_riskgate.decisions.requests import CallInput
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.model import Caller, RawCall, Reason, Verdict
from phylactery_riskgate.store.decisions import CallKey


def caller_of(principal: Principal) -> Caller:
    """Return the caller for the engine; of an end user that a delegate names only the level of a guest counts."""
    return Caller(
        principal.subject, principal.tenant, principal.level, principal.groups, direct=not principal.delegated
    )


def raw_call(call: CallInput) -> RawCall:
    """Return the call as the engine expects it."""
    return RawCall(
        tool=call.tool,
        tool_call_id=call.tool_call_id,
        arguments_json=call.arguments_json,
        arguments_struct=call.arguments_struct,
        raw_args_hash=call.raw_args_hash,
        tool_schema_hash=call.tool_schema_hash,
    )


def key_of(principal: Principal, run_id: str, tool_call_id: str) -> CallKey:
    """Return the key of a call."""
    return CallKey(principal.tenant, principal.subject, run_id, tool_call_id)


def fingerprint(call: RawCall, verdict: Verdict) -> str:
    """Return the fingerprint of a proposal: tool and raw arguments.

    Arguments without a canonical form are distinguished by their bytes. A claimed hash that does not match changes the
    fingerprint: it must not find the answer that the correct hash got.
    """
    raw = verdict.raw_args_hash or sha256((call.arguments_json or "").encode("utf-8", "surrogatepass"))
    honest = call.raw_args_hash in ("", raw)
    return sha256(canonical_bytes([call.tool, raw, honest]))


BY_OPERATOR = frozenset({"DECISION_REVOKED", "FROZEN"})
"""Codes of the reasons of what an operator stopped."""


def is_frozen(reasons: Sequence[Reason]) -> bool:
    """Return True if an operator's freeze or revocation decided instead of the policies."""
    return any(one.code in BY_OPERATOR for one in reasons)


def frozen_body(verdict: Verdict) -> dict[str, Any]:
    """Return the record's marker of a freeze: policies tested against such a record have nothing to compare with."""
    return {"frozen": True} if is_frozen(verdict.reasons) else {}


def bundle_body(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a record that name the bundle."""
    return {"bundle_revision": verdict.bundle_revision, "bundle_hash": verdict.bundle_hash}


def verdict_body(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a record that describe a verdict."""
    bound = verdict.bound
    return {
        "decision": str(verdict.decision),
        "reasons": [
            {"code": reason.code, "message": reason.message, "path": reason.path, "policy_id": reason.policy_id}
            for reason in verdict.reasons
        ],
        "policy_ids": list(verdict.policy_ids),
        **bundle_body(verdict),
        "risk": verdict.risk or "",
        "stakes": verdict.stakes,
        "facts": verdict.facts,
        "tool_version": bound.tool_version if bound else "",
        "approval_class": verdict.approval_class or "",
    }

"""Policies as a bundle's checks see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.bundle.lint import Finding, lint_each, unguarded_critical_tools
from phylactery_riskgate.domain.model import ApprovalClass, CatalogTool
from phylactery_riskgate.domain.policy.policies import Policy


def without_policy(bundle: Bundle, policy_id: str) -> Bundle:
    """Return the bundle without one policy; the cases should detect the difference."""
    return replace(bundle, policies=tuple(policy for policy in bundle.policies if policy.id != policy_id))


def lint(
    policies: Iterable[Policy], tools: Mapping[str, CatalogTool], classes: tuple[ApprovalClass, ...]
) -> tuple[Finding, ...]:
    """Return the violations in policy order, followed by insufficiently guarded critical tools.

    A violation about a missing safeguard names the first policy that would permit the tool.
    """
    ordered = tuple(policies)
    return (*lint_each(ordered, tools), *unguarded_critical_tools(ordered, tools, classes))

"""Slices of a bundle's policies, each with the policies that concern one action."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cedarpy import pst

from phylactery_riskgate.domain.facts.types import Mentions
from phylactery_riskgate.domain.policy.policies import (
    APPROVED_PATH,
    CLASS,
    Policy,
    context_path,
    mentioned,
    permit_needs,
)
from phylactery_riskgate.domain.policy.sets import PolicySets, policy_sets

ANY_THREAD = "*"
"""Represents every thread that no policy names; no request can name it."""
_THREAD = "Thread"


@dataclass(frozen=True, slots=True)
class PolicySlice:
    """The policies that concern one action, ready for evaluation.

    ``classes`` are the approval classes they name, ``named`` those of each policy, ``final`` the forbids that no
    approval can lift, ``threads`` the threads they name, and ``always_needs_approval`` says that every permit requires
    an approval.
    """

    sets: PolicySets
    policies: Mapping[str, Policy]
    mentions: Mentions
    classes: frozenset[str]
    named: Mapping[str, frozenset[str]]
    final: frozenset[str]
    threads: frozenset[str]
    always_needs_approval: bool

    def thread_of(self, thread: str) -> str:
        """Return the thread, or its representative if no policy can tell it from others of its tenant.

        A policy can distinguish threads only by name: no fact is a thread, and a thread has no attributes known to a
        bundle. So the entities of a user are built once, and not for every new thread.
        """
        return thread if thread in self.threads or ANY_THREAD in self.threads else ANY_THREAD


def slices_for(policies: Iterable[Policy], actions: Mapping[str, frozenset[str]]) -> dict[str, PolicySlice]:
    """Return for each action, given with its groups, the policies that concern it and the facts they use.

    Actions with the same policies share one slice, because building one of a thousand policies takes long.
    """
    every = tuple(policies)
    built: dict[tuple[str, ...], PolicySlice] = {}
    found: dict[str, PolicySlice] = {}
    for action, groups in actions.items():
        picked = {policy.id: policy for policy in every if policy.covers(action, groups)}
        ids = tuple(picked)
        if ids not in built:
            built[ids] = _slice(picked)
        found[action] = built[ids]
    return found


def without_task_policies(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """Remove the policies that cannot apply to a call without a task: their first condition is ``context.task.shown``.

    Such a policy neither decides nor fails, because evaluation ends at the first false operand of an &&. Without them
    their facts are not needed, and a call without a task is decided as if there were no tasks.
    """
    return tuple(policy for policy in policies if not _of_task_alone(policy))


def _of_task_alone(policy: Policy) -> bool:
    clauses = policy.tree.clauses
    if not clauses or not isinstance(clauses[0], pst.When):
        return False
    node = clauses[0].expr
    while isinstance(node, pst.BinaryOp) and node.op == "and":
        node = node.left
    return context_path(node) == ("task", "shown")


def _slice(picked: Mapping[str, Policy]) -> PolicySlice:
    mentions = Mentions()
    classes: dict[str, frozenset[str]] = {}
    final: set[str] = set()
    for policy in picked.values():
        paths = set()
        for path, whole in mentioned(policy.tree.clauses):
            mentions.add(path, whole=whole)
            paths.add(path[:1])
        uids = pst.entity_uids(policy.tree.clauses)
        classes[policy.id] = frozenset(uid.id for uid in uids if str(uid.type) == CLASS)
        if policy.forbids and not paths & {(), APPROVED_PATH}:
            final.add(policy.id)
    named_classes = frozenset().union(*classes.values())
    return PolicySlice(
        sets=policy_sets(policy.tree for policy in picked.values()),
        policies=picked,
        mentions=mentions,
        classes=named_classes,
        named=classes,
        final=frozenset(final),
        threads=frozenset(one for policy in picked.values() for one in _threads_named(policy)),
        always_needs_approval=all(one.forbids or permit_needs(one.tree, named_classes) for one in picked.values()),
    )


def _threads_named(policy: Policy) -> Iterator[str]:
    scopes = (getattr(scope, "entity", None) for scope in (policy.tree.principal, policy.tree.resource))
    for uid in (*scopes, *pst.entity_uids(policy.tree.clauses)):
        if isinstance(uid, pst.EntityUid) and str(uid.type) == _THREAD:
            yield uid.id

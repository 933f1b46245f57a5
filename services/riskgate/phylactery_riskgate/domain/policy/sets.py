"""Policy sets optimized for one action: the same answers with less evaluation work.

Three optimizations reduce the cost, and none changes an answer (a test compares them with the unmodified policies):

- The scope's action is removed. Slicing has compared it already, and Cedar would compare it again in each evaluation:
  about half the cost of a policy that does not match.
- ``context.approved`` is read from the thread, and its classes are strings. Cedar parses the context for every
  evaluation, at several microseconds a value and twenty an entity; the thread, like the user, is passed pre-parsed.
- Where there are many policies, they are evaluated in groups: a group matches if one of its policies does. Only the
  policies of a matching group are then evaluated one by one, which takes as long as some sixty single policies. So
  policies that differ only in their literals are grouped first, such as a list of forbidden places: each of them
  matches few calls, and those that match many are not in their group. A group is a set of conditions, not a chain of
  ||, because a set evaluates all of them: an error in any is an error of the group.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import cedarpy
from cedarpy import pst

from phylactery_riskgate.domain.policy.policies import (
    APPROVED,
    CLASS,
    approval_classes,
    children,
    context_path,
    policy_set,
)

GROUP = 32
"""The number of policies evaluated as one group."""
MANY = 96
"""Above this number of policies of one effect they are grouped; fewer are cheaper one by one."""
ALIKE = 16
"""Above this number of policies that differ only in their literals these are grouped, however many others there are."""

_MAX_DEPTH = 60
"""Cedar's limit is 100 levels. A condition is deeper in a group than alone, so a policy this deep stays alone."""

_ANY = pst.ScopeAny()
_TRUE = pst.BoolLit(value=True)
_OF_THREAD = pst.GetAttr(pst.Var("resource"), APPROVED)
_LITERALS = (pst.BoolLit, pst.LongLit, pst.StringLit, pst.EntityLit, pst.EntityUid)
_NO_ANNOTATIONS: pst.FrozenMap[str, str] = pst.FrozenMap()
_ALWAYS_BOOLEAN = frozenset({
    "eq", "not_eq", "less", "less_eq", "greater", "greater_eq", "and", "or", "in", "contains", "contains_all",
    "contains_any", "not",
})  # fmt: skip


class _NotTextError(Exception):
    """A policy that uses approvals or their classes in a way that strings cannot replace."""


@dataclass(frozen=True, slots=True)
class PolicySets:
    """The policies of one action, ready for evaluation.

    ``first`` is evaluated for every call. A group in it, listed in ``groups``, represents the policies in its own set;
    ``alone`` has all policies one by one, for what a group cannot answer. ``asks_thread`` says that they read the
    approvals from the thread, as strings, and not from the context.
    """

    first: cedarpy.PolicySet
    groups: Mapping[str, cedarpy.PolicySet]
    alone: cedarpy.PolicySet
    asks_thread: bool


def policy_sets(
    trees: Iterable[pst.Template], *, many: int = MANY, group: int = GROUP, alike: int = ALIKE
) -> PolicySets:
    """Build the sets for policies whose scope covers one action, whatever else it requires; each has its own id.

    More than ``alike`` policies of one effect and shape, and more than ``many`` others, are combined in groups of size
    ``group``.
    """
    asked, asks_thread = _asking_thread([replace(one, action=_ANY, annotations=_NO_ANNOTATIONS) for one in trees])
    alone = policy_set(asked)
    first: list[pst.Template] = []
    groups: dict[str, cedarpy.PolicySet] = {}
    for members in _grouped(asked, many, group, alike):
        if len(members) == 1:
            first += members
            continue
        name = f"*{len(groups)}"  # no policy id of a bundle has a "*"
        first.append(_as_one(name, members))
        groups[name] = policy_set(members)
    return PolicySets(policy_set(first) if groups else alone, groups, alone, asks_thread)


def _grouped(trees: Sequence[pst.Template], many: int, group: int, alike: int) -> Iterator[Sequence[pst.Template]]:
    for effect in ("permit", "forbid"):
        same = [one for one in trees if one.effect == effect]
        together = _put_together(same, many, alike) if len(same) > min(many, alike) else []
        taken = {one.id for members in together for one in members}
        yield from ([one] for one in same if one.id not in taken)
        for members in together:
            for begin in range(0, len(members), group):
                yield members[begin : begin + group]


def _put_together(same: Sequence[pst.Template], many: int, alike: int) -> list[Sequence[pst.Template]]:
    """Return the policies of one effect to be grouped: lists of the same shape, and others if they are many."""
    shallow = [one for one in same if _is_shallow(one)]
    by_shape: dict[Hashable, list[pst.Template]] = {}
    for one in shallow:
        by_shape.setdefault(_shape((one.principal, one.resource, one.clauses)), []).append(one)
    lists: list[Sequence[pst.Template]] = [members for members in by_shape.values() if len(members) > alike]
    listed = {one.id for members in lists for one in members}
    if len(same) - len(listed) > many:
        lists.append([one for one in shallow if one.id not in listed])
    return lists


def _shape(node: Any) -> Hashable:
    """Return the shape that trees share if they differ only in literals, and in the number of elements of a set."""
    kind = type(node).__name__
    if isinstance(node, _LITERALS):
        return kind
    if isinstance(node, pst.Like):
        return kind, _shape(node.base)
    if isinstance(node, pst.Set):
        return kind, frozenset(_shape(one) for one in node.elements)
    if isinstance(node, Mapping):
        node = tuple(sorted(node.items()))
    elif is_dataclass(node):
        node = (kind, *(getattr(node, part.name) for part in fields(node)))
    found: Hashable = tuple(_shape(one) for one in node) if isinstance(node, tuple) else node
    return found


def _is_shallow(tree: pst.Template) -> bool:
    return _fits(tree.clauses, _MAX_DEPTH - len(tree.clauses))


def _fits(node: Any, levels: int) -> bool:
    """Return True if a tree has at most this many levels."""
    return levels >= 0 and all(_fits(child, levels - 1) for child in children(node))


def _as_one(name: str, members: Sequence[pst.Template]) -> pst.Template:
    conditions = pst.Set(tuple(_condition(one) for one in members))
    clause = pst.When(pst.BinaryOp("contains", conditions, _TRUE))
    return replace(members[0], id=name, principal=_ANY, resource=_ANY, clauses=(clause,))


def _condition(tree: pst.Template) -> pst.Expr:
    """Return everything a policy requires except its action as one condition, in Cedar's evaluation order."""
    parts = [
        *_scope("principal", tree.principal),
        *_scope("resource", tree.resource),
        *(one.expr if isinstance(one, pst.When) else pst.UnaryOp("not", one.expr) for one in tree.clauses),
    ]
    if len(parts) == 1 and getattr(parts[0], "op", "") in _ALWAYS_BOOLEAN:
        return parts[0]
    # A condition that is not a boolean is an error in "&&", as it is in a policy, but not in a set.
    whole: pst.Expr = _TRUE
    for part in parts:
        whole = pst.BinaryOp("and", whole, part)
    return whole


def _scope(name: pst.VarName, scope: pst.PrincipalOrResourceConstraint) -> Iterator[pst.Expr]:
    if isinstance(scope, pst.ScopeEq):
        yield pst.BinaryOp("eq", pst.Var(name), _entity(scope.entity))
    elif isinstance(scope, pst.ScopeIn):
        yield pst.BinaryOp("in", pst.Var(name), _entity(scope.entity))
    elif isinstance(scope, pst.ScopeIs):
        yield pst.Is(pst.Var(name), scope.entity_type, None)
    elif isinstance(scope, pst.ScopeIsIn):
        yield pst.Is(pst.Var(name), scope.entity_type, _entity(scope.entity))


def _entity(entity: pst.EntityOrSlot) -> pst.EntityLit:
    assert isinstance(entity, pst.EntityUid), "a bundle's policies have no slots"
    return pst.EntityLit(entity)


def _asking_thread(trees: list[pst.Template]) -> tuple[list[pst.Template], bool]:
    """Return the policies reading approvals from the thread, where strings can replace entities, and whether so."""
    try:
        return [replace(one, clauses=_of_thread(one.clauses)) for one in trees], True
    except _NotTextError:
        return trees, False


def _of_thread(node: Any) -> Any:
    if approval_classes(node) is not None:
        return replace(node, left=_OF_THREAD, right=_names(node.right))
    if _needs_entities(node):
        raise _NotTextError
    if context_path(node) is not None or _asks_context(node) or not list(children(node)):
        return node
    if isinstance(node, tuple):
        return tuple(_of_thread(one) for one in node)
    if isinstance(node, Mapping):
        return pst.FrozenMap({name: _of_thread(one) for name, one in node.items()})
    parts = {one.name: getattr(node, one.name) for one in fields(node)}
    return replace(node, **{name: _of_thread(part) for name, part in parts.items()})


def _needs_entities(node: Any) -> bool:
    """Return True if a node is the context, its approvals, a presence test of these, or the type of the classes."""
    path = context_path(node)
    if path is not None:
        return path[:1] in {(), (APPROVED,)}
    if _asks_context(node):
        return bool(node.attrs[0] == APPROVED)
    return isinstance(node, pst.EntityType) and bool(node.basename == CLASS)


def _asks_context(node: Any) -> bool:
    return isinstance(node, pst.HasAttr) and context_path(node.base) == ()


def _names(literals: Any) -> Any:
    if isinstance(literals, pst.Set):
        return pst.Set(tuple(_names(one) for one in literals.elements))
    return pst.StringLit(literals.value.id)

"""Reads from a policy's syntax what it asks of approvals."""

from __future__ import annotations

from typing import Any

from cedarpy import pst

APPROVED = "approved"
"""``context.approved``, the set of approval classes that are satisfied: always there, empty when nobody approved."""

CLASS = "Class"

APPROVED_PATH = (APPROVED,)
_ASKS_SET = frozenset({"contains", "contains_all", "contains_any"})


def context_path(node: Any) -> tuple[str, ...] | None:
    """Answers the attributes of ``context.a.b``, or None where the node is something else."""
    attributes: list[str] = []
    while isinstance(node, pst.GetAttr):
        attributes.append(node.attr)
        node = node.base
    return tuple(reversed(attributes)) if isinstance(node, pst.Var) and node.name == "context" else None


def approval_classes(node: Any) -> frozenset[str] | None:
    """Answers the literal classes of ``context.approved.contains(…)`` and its kin, or None for anything else."""
    if not isinstance(node, pst.BinaryOp) or node.op not in _ASKS_SET or context_path(node.left) != APPROVED_PATH:
        return None
    literals = node.right.elements if isinstance(node.right, pst.Set) else (node.right,)
    if isinstance(node.right, pst.Set) == (node.op == "contains") or not literals:
        return None
    named = [one.value for one in literals if isinstance(one, pst.EntityLit)]
    if len(named) < len(literals) or any(str(uid.type) != CLASS for uid in named):
        return None
    return frozenset(uid.id for uid in named)


def needs(node: Any, classes: frozenset[str]) -> bool:
    """Says whether a condition can be true only with an approval of one of these classes."""
    if isinstance(node, pst.BinaryOp) and node.op in {"and", "or"}:
        sides = (needs(node.left, classes), needs(node.right, classes))
        return any(sides) if node.op == "and" else all(sides)
    named = approval_classes(node)
    if named is None:
        return False
    return named <= classes if isinstance(node, pst.BinaryOp) and node.op == "contains_any" else bool(named & classes)


def permit_needs(tree: pst.Template, classes: frozenset[str]) -> bool:
    """Says whether a permit can permit only with an approval of one of these classes."""
    return any(isinstance(clause, pst.When) and needs(clause.expr, classes) for clause in tree.clauses)

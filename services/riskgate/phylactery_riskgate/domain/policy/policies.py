"""Cedar policies: parsing, and analysis of their syntax trees."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import cedarpy
from cedarpy import pst

from phylactery_riskgate.domain.documents import BundleError, Faults

APPROVED = "approved"
"""``context.approved``, the set of satisfied approval classes: always present, empty without approvals."""

CLASS = "Class"

APPROVED_PATH = (APPROVED,)
_ASKS_SET = frozenset({"contains", "contains_all", "contains_any"})


def context_path(node: Any) -> tuple[str, ...] | None:
    """Return the attributes of ``context.a.b``, or None if the node is something else."""
    attributes: list[str] = []
    while isinstance(node, pst.GetAttr):
        attributes.append(node.attr)
        node = node.base
    return tuple(reversed(attributes)) if isinstance(node, pst.Var) and node.name == "context" else None


def approval_classes(node: Any) -> frozenset[str] | None:
    """Return the literal classes of ``context.approved.contains(…)`` and its variants, or None for anything else."""
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
    """Return True if a condition can be true only with an approval of one of these classes."""
    if isinstance(node, pst.BinaryOp) and node.op in {"and", "or"}:
        sides = (needs(node.left, classes), needs(node.right, classes))
        return any(sides) if node.op == "and" else all(sides)
    named = approval_classes(node)
    if named is None:
        return False
    return named <= classes if isinstance(node, pst.BinaryOp) and node.op == "contains_any" else bool(named & classes)


def permit_needs(tree: pst.Template, classes: frozenset[str]) -> bool:
    """Return True if a permit can apply only with an approval of one of these classes."""
    return any(isinstance(clause, pst.When) and needs(clause.expr, classes) for clause in tree.clauses)


MAX_NESTING = 150
"""Cedar's nesting limit is 100. Its parser follows a deeper statement before it refuses it, and from about 600 brackets
or 1,400 operators on it overflows the stack, which ends the process."""

_WORD = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*"?|//[^\n]*|\|\||&&|[-+*.!<>=,(\[{)\]}]|\b(?:if|then|else|has|like|in|is)\b', re.DOTALL
)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LOOSEST = frozenset({"||", "if", "then", "else"})


def nesting(statement: str) -> int:
    """Return an upper bound of the syntax tree's depth; counting stops above MAX_NESTING.

    An operand of || is one level below it, of && below every || before it, of any other operator below both. The
    content of brackets is below what surrounds them, and what follows an if is below that if.
    """
    levels = [[0, 0, 0]]
    deepest = 0
    for match in _WORD.finditer(statement):
        word = match.group()
        level = levels[-1]
        if word in _OPENING:
            levels.append([0, 0, 0])
        elif word in _CLOSING:
            del levels[max(1, len(levels) - 1) :]
        elif word == ",":
            level[:] = [0, 0, 0]
        elif word in _LOOSEST:
            level[:] = [level[0] + 1, 0, 0]
        elif word == "&&":
            level[:] = [level[0], level[1] + 1, 0]
        elif not word.startswith(('"', "//")):
            level[2] += 1
        deepest = max(deepest, len(levels) + sum(map(sum, levels)))
        if deepest > MAX_NESTING:
            break
    return deepest


ALLOWS, LOW_STAKES = "allows", "low_stakes"
"""The annotation ``@allows("low_stakes")``, of a permit that holds where the words do not."""
_POLICY_ID = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MAX_TITLE = 200
MAX_POLICIES = 2_000
_ACTION = pst.EntityType("Action")
DECIMAL_HINT = (
    '; a JSON "number" and an amount are decimals in Cedar: compare them with .greaterThan(decimal("5.0")), '
    '.lessThan(…) or == decimal("5.0"); < and > are for whole numbers, "type: integer"'
)
_FRACTION = re.compile(r"(?<![\w.])\d*\.\d")
_PIECE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"?|//[^\n]*|;|\s+|[^\s";/]+|/', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: its own id (from @id), its texts for people, its place in the files and its syntax tree."""

    id: str
    title: str
    title_es: str
    file: str
    line: int
    tree: pst.Template

    @property
    def forbids(self) -> bool:
        """Return True if it is a forbid."""
        return self.tree.effect == "forbid"

    @property
    def low_stakes(self) -> bool:
        """Return True if it permits for low stakes alone: what only such policies permit is counted and told."""
        return self.tree.annotations.get(ALLOWS) == LOW_STAKES

    def covers(self, action: str, groups: frozenset[str]) -> bool:
        """Return True if its scope covers an action in these groups, with the same result as Cedar's."""
        scope = self.tree.action
        if isinstance(scope, pst.ScopeAny):
            return True
        if isinstance(scope, pst.ActionEq):
            return bool(scope.entity.type == _ACTION and scope.entity.id == action)
        return any(one.type == _ACTION and (one.id == action or one.id in groups) for one in scope.entities)


def parse_policies(file: str, text: str) -> tuple[Policy, ...]:
    """Parse one .cedar file, statement by statement, so that every error has its line.

    Raises:
        BundleError: a statement is not a policy, is a template, or lacks @id or @title; lists every such statement.
    """
    faults = Faults()
    found = read_policies(file, text, faults)
    faults.check()
    return found


def read_policies(file: str, text: str, faults: Faults) -> tuple[Policy, ...]:
    """Parse the valid statements of one .cedar file and collect the faults of the others; too many are a fault."""
    found: list[Policy] = []
    for count, (line, statement) in enumerate(_statements(file, text, faults)):
        if count == MAX_POLICIES:
            faults.add(BundleError(file, line, f"is one policy too many: a bundle has at most {MAX_POLICIES}"))
            break
        policy = faults.catch(partial(_parse, file, line, statement))
        found += () if policy is None else (policy,)
    return tuple(found)


def _statements(file: str, text: str, faults: Faults) -> Iterator[tuple[int, str]]:
    """Split the text after every ";" outside strings and comments; the line is that of the first word."""
    line = 1
    first = 0
    pieces: list[str] = []
    for match in _PIECE.finditer(text):
        part = match.group()
        pieces.append(part)
        if not first and not part.isspace() and not part.startswith("//"):
            first = line
        line += part.count("\n")
        if part == ";":
            yield first, "".join(pieces)
            first = 0
            pieces = []
    if first:
        faults.add(BundleError(file, first, "a policy ends with ;"))


def _has_fraction(piece: str) -> bool:
    """Return True if a piece of a statement is code with a number such as 0.5, which Cedar has no literal for."""
    return not piece.startswith(('"', "//")) and _FRACTION.search(piece) is not None


def _parse(file: str, line: int, statement: str) -> Policy:
    if nesting(statement) > MAX_NESTING:
        raise BundleError(file, line, f"is nested deeper than {MAX_NESTING} levels; write it as several policies")
    try:
        parsed = cedarpy.policies_to_pst(statement)
    except ValueError as error:
        hint = DECIMAL_HINT if any(map(_has_fraction, _PIECE.findall(statement))) else ""
        raise BundleError(file, line, f"is not a Cedar policy: {error}{hint}") from error
    if parsed.templates or len(parsed.static_policies) != 1:
        raise BundleError(file, line, "a statement is one policy without slots")
    tree = next(iter(parsed.static_policies.values()))
    policy_id = tree.annotations.get("id", "")
    title = tree.annotations.get("title", "")
    if _POLICY_ID.fullmatch(policy_id) is None:
        raise BundleError(file, line, 'a policy has an @id("…") of letters, digits, _ . and -')
    if not 0 < len(title) <= _MAX_TITLE:
        raise BundleError(file, line, f'the policy {policy_id} has an @title("…") of at most {_MAX_TITLE} characters')
    title_es = tree.annotations.get("title_es", "") or title
    policy = Policy(policy_id, title, title_es[:_MAX_TITLE], file, line, replace(tree, id=policy_id))
    if ALLOWS in tree.annotations and not (policy.low_stakes and not policy.forbids and _is_of_low_stakes(tree)):
        told = f'@{ALLOWS}("{LOW_STAKES}") is of a permit with the condition context.stakes == "low" &&'
        raise BundleError(file, line, f"{policy_id}: {told}")
    return policy


def _is_of_low_stakes(tree: pst.Template) -> bool:
    """Return True if a policy can only apply to calls of low stakes: one of its conditions demands just that."""
    waiting, found = [clause.expr for clause in tree.clauses if isinstance(clause, pst.When)], False
    while waiting:
        node = waiting.pop()
        if isinstance(node, pst.BinaryOp) and node.op == "and":
            waiting += [node.left, node.right]
        elif isinstance(node, pst.BinaryOp) and node.op == "eq":
            found = found or (context_path(node.left) == ("stakes",) and getattr(node.right, "value", None) == "low")
    return found


def named_tools(policy: Policy) -> Iterator[str]:
    """Return the actions that a policy names and that are not groups: the tools in its scope or in a condition."""
    for uid in pst.entity_uids(policy.tree):
        if uid.type == _ACTION and ":" not in uid.id:
            yield uid.id


def policy_handle(policies: Iterable[Policy]) -> cedarpy.PolicySet:
    """Build the policy set for Cedar, with a policy's @id as its id."""
    return policy_set(policy.tree for policy in policies)


def policy_set(trees: Iterable[pst.Template]) -> cedarpy.PolicySet:
    """Build the policy set for Cedar from syntax trees, each under its own id.

    Raises:
        ValueError: Cedar refuses one of them.
    """
    static = {tree.id: tree for tree in trees}
    return cedarpy.PolicySet.from_pst(
        pst.PolicySet(templates=pst.FrozenMap(), static_policies=pst.FrozenMap(static), template_links=())
    )


def mentioned(node: Any) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Return every path below ``context`` that a tree uses, and whether it uses the value or only its presence.

    Bare ``context`` is the empty path.
    """
    path = context_path(node)
    if path is not None:
        yield path, True
        return
    if isinstance(node, pst.HasAttr):
        base = context_path(node.base)
        if base is not None:
            yield (*base, *node.attrs), False
            return
    for child in children(node):
        yield from mentioned(child)


def children(node: Any) -> Iterator[Any]:
    """Return the direct children of a syntax tree node."""
    if isinstance(node, tuple):
        yield from node
    elif isinstance(node, dict):
        yield from node.values()
    elif is_dataclass(node):
        for part in fields(node):
            value = getattr(node, part.name)
            if isinstance(value, tuple | dict) or is_dataclass(value):
                yield value

"""Lint rules for policies that Cedar accepts but that would silently mean something other than they say.

Each rule was found by experiment (design: riskgate.md, "The Cedar model").
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from cedarpy import pst

from phylactery_riskgate.domain.facts.facts import NO_TOOL, context_type
from phylactery_riskgate.domain.facts.types import RecordOf, Scalar, SetOf
from phylactery_riskgate.domain.model import ApprovalClass, CatalogTool
from phylactery_riskgate.domain.policy.cedar_schema import action_groups
from phylactery_riskgate.domain.policy.policies import (
    APPROVED,
    APPROVED_PATH,
    Policy,
    approval_classes,
    children,
    context_path,
    named_tools,
    needs,
    permit_needs,
)

_COMPARES = frozenset(
    {"eq", "not_eq", "less", "less_eq", "greater", "greater_eq"}
    | {"decimal_less_than", "decimal_less_eq", "decimal_greater", "decimal_greater_eq"}
)
_ASKS_SET = frozenset({"contains", "contains_all", "contains_any"})

Literal = str | Decimal


def impossible_literals(node: Any, contexts: list[RecordOf]) -> Iterator[str]:
    """Return one sentence for each literal that no tool covered by the policy could ever have at that place."""
    if isinstance(node, pst.BinaryOp) and node.op in _COMPARES | _ASKS_SET:
        for fact, other in ((node.left, node.right), (node.right, node.left)):
            path = context_path(fact)
            for literal in _literals(other) if path else ():
                yield from _judged(path or (), literal, contexts)
    elif isinstance(node, pst.Like):
        path = context_path(node.base)
        text = "".join(part.value for part in node.pattern if isinstance(part, pst.Char))
        scalars = _scalars(path, contexts) if path else []
        if path and scalars and text != text.lower() and all(one.folded for one in scalars):
            yield f"like asks for capital letters, and {_named(path)} has none"
    for child in children(node):
        yield from impossible_literals(child, contexts)


def _judged(path: tuple[str, ...], literal: Literal, contexts: list[RecordOf]) -> Iterator[str]:
    scalars = _scalars(path, contexts)
    if scalars and not any(one.can_be(literal) for one in scalars):
        yield f"{_named(path)} is never {literal!s}: {_range(scalars[0], literal)}"


def _scalars(path: tuple[str, ...] | None, contexts: list[RecordOf]) -> list[Scalar]:
    """Return the types of the value at a path, or of its elements, for every tool that has it."""
    found: list[Scalar] = []
    for context in contexts:
        fact: Any = context
        for name in path or ():
            field = fact.fields.get(name) if isinstance(fact, RecordOf) else None
            fact = None if field is None else field.type
        fact = fact.element if isinstance(fact, SetOf) else fact
        if isinstance(fact, Scalar):
            found.append(fact)
    return found


def _literals(node: Any) -> Iterator[Literal]:
    if isinstance(node, pst.StringLit):
        yield node.value
    elif isinstance(node, pst.LongLit):
        yield Decimal(node.value)
    elif isinstance(node, pst.UnaryOp) and node.op == "decimal" and isinstance(node.arg, pst.StringLit):
        with suppress(InvalidOperation):  # not a decimal, which Cedar's own validation reports
            yield Decimal(node.arg.value)
    elif isinstance(node, pst.Set):
        for element in node.elements:
            yield from _literals(element)


def _range(scalar: Scalar, literal: Literal) -> str:
    if scalar.values is not None:
        return "it is one of " + ", ".join(sorted(map(str, scalar.values))[:10])
    if isinstance(literal, str):
        return "it has no capital letter"
    low, high = scalar.low, scalar.high
    if low is not None and high is not None:
        return f"it is between {low} and {high}"
    return f"it is at least {low}" if low is not None else f"it is at most {high}"


def _named(path: tuple[str, ...]) -> str:
    return "context." + ".".join(path)


_CAN_FAIL = frozenset({"add", "sub", "mul", "neg", "offset", "duration_since", "get_tag"})
"""Operations that fail if a number overflows or a tag is missing; Cedar then skips the policy, and a skipped forbid
allows."""

_PRINCIPAL = frozenset({"level", "tenant"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule violation of a policy."""

    policy: Policy
    message: str


def lint_each(
    policies: tuple[Policy, ...], tools: Mapping[str, CatalogTool], elsewhere: Mapping[str, CatalogTool] | None = None
) -> list[Finding]:
    """Return the violations of each policy that do not depend on the other policies.

    ``elsewhere`` are tools of the packaged catalog that are not in this one. What a policy says about them is not
    treated as a misspelling, so that the packaged policies load with any catalog; ``silent_parts`` reports it.
    """
    found = [Finding(policy, message) for policy in policies for message in _lint_one(policy, tools, elsewhere or {})]
    return found + _repeated_ids(policies)


def silent_parts(
    policies: Iterable[Policy], tools: Mapping[str, CatalogTool], packaged: Mapping[str, CatalogTool]
) -> Iterator[Finding]:
    """Return the parts of policies that refer to packaged tools missing from this catalog and so can never match."""
    for policy in policies:
        for name in dict.fromkeys(named_tools(policy)):
            if name not in tools:
                yield Finding(
                    policy, f"names the tool {name}, which this catalog does not hold: that part says nothing"
                )
            elif name in packaged and tools[name].schema_hash != packaged[name].schema_hash:
                yield Finding(policy, f"names the tool {name}: this catalog's is not the packaged one; look at both")
        contexts = _contexts(policy, tools)
        for clause in policy.tree.clauses:
            for message in _unknown_names(clause.expr, contexts):
                yield Finding(policy, f"{message}: that part says nothing")


def _repeated_ids(policies: tuple[Policy, ...]) -> list[Finding]:
    seen: set[str] = set()
    found = []
    for policy in policies:
        if policy.id in seen:
            found.append(Finding(policy, f"repeats the @id {policy.id}"))
        seen.add(policy.id)
    return found


def _lint_one(policy: Policy, tools: Mapping[str, CatalogTool], elsewhere: Mapping[str, CatalogTool]) -> Iterator[str]:
    contexts = _contexts(policy, tools)
    known = [*contexts, *_contexts(policy, elsewhere)]
    for clause in policy.tree.clauses:
        widening = policy.forbids == isinstance(clause, pst.Unless)
        yield from _approval_faults(clause.expr, positive=widening)
        yield from _failing_parts(clause.expr)
        yield from _unknown_names(clause.expr, known)
        yield from impossible_literals(clause.expr, contexts)
        yield from _texts_out_of_nfc(clause.expr)


# ---- more approvals can only allow more ------------------------------------------------------------------------------


def _approval_faults(node: Any, *, positive: bool) -> Iterator[str]:
    """Walk and, or and not; ``positive`` is True where more approvals can only turn the decision towards Allow."""
    if isinstance(node, pst.BinaryOp) and node.op in {"and", "or"}:
        yield from _approval_faults(node.left, positive=positive)
        yield from _approval_faults(node.right, positive=positive)
    elif isinstance(node, pst.UnaryOp) and node.op == "not":
        yield from _approval_faults(node.arg, positive=not positive)
    elif approval_classes(node) is not None:
        if not positive:
            yield "an approval may only widen what is allowed: context.approved stands here where it narrows"
    elif _touches_approved(node):
        yield "context.approved is used only as .contains, .containsAll or .containsAny with Class literals"


def _touches_approved(node: Any) -> bool:
    path = context_path(node)
    if path is not None:
        return path in {(), APPROVED_PATH}
    if isinstance(node, pst.HasAttr) and context_path(node.base) == ():
        return node.attrs[0] == APPROVED
    return any(_touches_approved(child) for child in children(node))


# ---- no runtime errors, no misspellings -----------------------------------------------------------------------------


def _failing_parts(node: Any) -> Iterator[str]:
    if isinstance(node, pst.BinaryOp | pst.UnaryOp) and node.op in _CAN_FAIL:
        yield f"{node.op} can fail while it is evaluated, and a policy that fails is skipped; derive the fact instead"
    if isinstance(node, pst.GetAttr) and context_path(node) is None and not _safe_attribute(node):
        yield f"the attribute {node.attr} is read of an entity that may not be there"
    for child in children(node):
        yield from _failing_parts(child)


def _safe_attribute(node: pst.GetAttr) -> bool:
    return isinstance(node.base, pst.Record) or (isinstance(node.base, pst.Var) and node.attr in _PRINCIPAL)


def _texts_out_of_nfc(node: Any) -> Iterator[str]:
    """Return one sentence for each text in another normal form than paths are bound in: it reads alike and never is."""
    text = node.value if isinstance(node, pst.StringLit) else ""
    if isinstance(node, pst.Like):
        text = "".join(part.value if isinstance(part, pst.Char) else "*" for part in node.pattern)
    if not unicodedata.is_normalized("NFC", text):
        yield f"{text!a} is not in Unicode's form NFC, in which paths are bound: no path matches it; write it in NFC"
    for child in children(node):
        yield from _texts_out_of_nfc(child)


def _contexts(policy: Policy, tools: Mapping[str, CatalogTool]) -> list[RecordOf]:
    covered = [context_type(tool) for name, tool in tools.items() if policy.covers(name, action_groups(tool))]
    return covered or [context_type(NO_TOOL)]


def _unknown_names(node: Any, contexts: list[RecordOf]) -> Iterator[str]:
    if isinstance(node, pst.HasAttr):
        base = context_path(node.base)
        if base is not None and not any(_exists(context, (*base, *node.attrs)) for context in contexts):
            yield f"has asks for context.{'.'.join((*base, *node.attrs))}, which no tool it covers has"
        elif isinstance(node.base, pst.Var) and base is None and node.attrs[0] not in _PRINCIPAL:
            yield f"has asks for {node.base.name}.{node.attrs[0]}, which does not exist"
    for child in children(node):
        yield from _unknown_names(child, contexts)


def _exists(fact: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(fact, RecordOf) or name not in fact.fields:
            return False
        fact = fact.fields[name].type
    return True


# ---- critical tools -------------------------------------------------------------------------------------------------


def unguarded_critical_tools(
    policies: tuple[Policy, ...], tools: Mapping[str, CatalogTool], classes: tuple[ApprovalClass, ...]
) -> Iterator[Finding]:
    """Return the critical tools that may be allowed without an approval by someone other than the requester.

    The check is syntactic. A tool of risk critical is guarded if one forbid covers every call of it and only such an
    approval lifts it, or if every permit requires one.
    """
    others = frozenset(one.name for one in classes if one.who != "requester")
    for name, tool in tools.items():
        if tool.risk != "critical":
            continue
        covering = [policy for policy in policies if policy.covers(name, action_groups(tool))]
        if any(_guards(policy, others) for policy in covering):
            continue
        for policy in covering:
            if not policy.forbids and not permit_needs(policy.tree, others):
                yield Finding(policy, f"could allow the critical tool {name} without an approval by another person")
                break


def _guards(policy: Policy, others: frozenset[str]) -> bool:
    tree = policy.tree
    unconditional = isinstance(tree.principal, pst.ScopeAny) and isinstance(tree.resource, pst.ScopeAny)
    if not policy.forbids or not unconditional or not tree.clauses:
        return False
    return all(isinstance(clause, pst.Unless) and needs(clause.expr, others) for clause in tree.clauses)

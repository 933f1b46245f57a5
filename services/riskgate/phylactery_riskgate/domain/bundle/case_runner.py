"""Bundle test runner: case results, policy coverage and mutation testing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from cedarpy import pst

from phylactery_riskgate.domain.bundle.bundle import Bundle, with_tools
from phylactery_riskgate.domain.bundle.cases import BundleCase, CaseResult, compare
from phylactery_riskgate.domain.model import CallSite, RawCall, Verdict
from phylactery_riskgate.domain.policy.eligibility import Approver, enough
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.explanation import explain
from phylactery_riskgate.domain.policy.policies import Policy


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bundle with one changed policy; ``change`` describes the change.

    ``whole`` is True if the policy as a whole was changed. Where only a condition was dropped, another policy may have
    the same effect, so that no case can detect the mutant.
    """

    policy: Policy
    change: str
    bundle: Bundle
    whole: bool


def engine_for_cases(bundle: Bundle) -> DecisionEngine:
    """Return the engine for the cases: the catalog plus the tools that only the cases define."""
    return DecisionEngine(with_tools(bundle, bundle.case_tools) if bundle.case_tools else bundle)


def run_bundle_tests(bundle: Bundle) -> tuple[CaseResult, ...]:
    """Run every case in the bundle's tests/, in file order."""
    engine = engine_for_cases(bundle)
    return tuple(CaseResult(case.name, _differences(engine, case)) for case in bundle.cases)


def ask_case(case: BundleCase, engine: DecisionEngine) -> Verdict:
    """Decide the call of a case."""
    return engine.decide(
        RawCall(case.tool, "case", arguments_struct=case.arguments),
        case.user.caller(),
        CallSite("case", "case", thread_tenant=case.thread_tenant, pathway=case.pathway),
        approved=frozenset(case.approved) | _approved(case, engine.bundle),
        usage=case.read_usage,
        task=case.task,
    )


def _approved(case: BundleCase, bundle: Bundle) -> frozenset[str]:
    """Return the classes that a case's approvers satisfy."""
    found: set[str] = set()
    for wanted in bundle.classes:
        said = [
            Approver(one.id, case.user.tenant, one.approver, one.level, frozenset(one.groups))
            for one in case.approvals.get(wanted.name, ())
        ]
        if said and enough(wanted, case.user.id, said, bundle):
            found |= {one.name for one in bundle.classes if wanted.name in {one.name, bundle.asked_as(one.name)}}
    return frozenset(found)


def covered(bundle: Bundle) -> dict[str, tuple[str, ...]]:
    """Return, for each policy, the cases in which it determined an answer to any question; () if there are none."""
    engine = engine_for_cases(bundle)
    found: dict[str, list[str]] = {policy.id: [] for policy in bundle.policies}
    for case in bundle.cases:
        steps = explain(engine, partial(ask_case, case)).steps
        for policy_id in {policy.id for step in steps for policy in step.policies}:
            found[policy_id].append(case.name)
    return {policy_id: tuple(names) for policy_id, names in found.items()}


def surviving(bundle: Bundle) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant of the bundle and whether it survives, i.e. all cases still pass."""
    for mutant in mutants(bundle):
        yield mutant, not _noticed(mutant.bundle)


def mutants(bundle: Bundle) -> Iterator[Mutant]:
    """Generate the mutants: each policy removed, each policy's effect inverted, and each of its conditions removed."""
    for index, policy in enumerate(bundle.policies):
        others = (bundle.policies[:index], bundle.policies[index + 1 :])
        yield Mutant(policy, "forgotten", replace(bundle, policies=(*others[0], *others[1])), whole=True)
        for change, tree in _changed(policy.tree):
            changed = replace(policy, tree=tree)
            whole = tree.effect != policy.tree.effect
            yield Mutant(policy, change, replace(bundle, policies=(*others[0], changed, *others[1])), whole=whole)


def _changed(tree: pst.Template) -> Iterator[tuple[str, pst.Template]]:
    other: pst.Effect = "permit" if tree.effect == "forbid" else "forbid"
    yield f"made a {other}", replace(tree, effect=other)
    for index, clause in enumerate(tree.clauses):
        word = "when" if isinstance(clause, pst.When) else "unless"
        name = word if len(tree.clauses) == 1 else f"{word} {index + 1}"
        rest = (tree.clauses[:index], tree.clauses[index + 1 :])
        yield f"{name} forgotten", replace(tree, clauses=(*rest[0], *rest[1]))
        for side, expression in _without_operand(clause.expr):
            shorter = replace(clause, expr=expression)
            yield f"{name}: {side} forgotten", replace(tree, clauses=(*rest[0], shorter, *rest[1]))


def _without_operand(node: pst.Expr) -> Iterator[tuple[str, pst.Expr]]:
    """Return the condition without each operand of its ||; && is left alone, as its operands may guard later ones."""
    if isinstance(node, pst.BinaryOp) and node.op == "or":
        yield "left of ||", node.right
        yield "right of ||", node.left


def _noticed(bundle: Bundle) -> bool:
    engine = engine_for_cases(bundle)
    return any(_differences(engine, case) for case in bundle.cases)


def _differences(engine: DecisionEngine, case: BundleCase) -> tuple[str, ...]:
    verdict = ask_case(case, engine)
    actual = {
        "decision": verdict.decision.value,
        "approval_class": verdict.approval_class,
        "policies": list(verdict.policy_ids),
        "reason": verdict.reasons[0].code,
    }
    wanted = case.expect.approval_class
    asked = wanted and engine.bundle.asked_as(wanted)
    return compare(case.expect.model_copy(update={"approval_class": asked}), actual)

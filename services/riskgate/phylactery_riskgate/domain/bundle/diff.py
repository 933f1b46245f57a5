"""Differences between two bundles: in content, and in the decisions on the calls of their cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from cedarpy import pst

from phylactery_riskgate.domain.bundle.bundle import Bundle, with_tools
from phylactery_riskgate.domain.bundle.case_runner import ask_case
from phylactery_riskgate.domain.bundle.files import SETTINGS_FILE
from phylactery_riskgate.domain.documents import read_document
from phylactery_riskgate.domain.model import CatalogTool, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.policies import Policy


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; ``part`` is setting, tool, policy, user, case or decision, ``what`` added, removed or changed."""

    part: str
    name: str
    what: str
    detail: str = ""

    @property
    def text(self) -> str:
        """Return the difference as one line."""
        sign = {"added": "+", "removed": "-"}.get(self.what, "~")
        return f"{sign} {self.part} {self.name}" + (f": {self.detail}" if self.detail else "")


def diff(old: Bundle, new: Bundle) -> tuple[Change, ...]:
    """Return all differences, content first. The revision is not one: it always differs."""
    policies = ({one.id: one for one in old.policies}, {one.id: one for one in new.policies})
    cases = ({one.name: one for one in old.cases}, {one.name: one for one in new.cases})
    users = tuple({f"{tenant}/{name}": one for (tenant, name), one in each.users.items()} for each in (old, new))
    return (
        *_compared("setting", _settings(old), _settings(new), _values),
        *_compared("tool", old.tools, new.tools, _tool_fields),
        *_compared("policy", *policies, _policy_parts),
        *_compared("user", users[0], users[1], lambda _old, _new: ""),
        *_compared("case", *cases, lambda _old, _new: ""),
        *_decisions(old, new),
    )


def _compared(part: str, old: Mapping[str, Any], new: Mapping[str, Any], detail: Any) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        if name not in old:
            yield Change(part, name, "added")
        elif name not in new:
            yield Change(part, name, "removed")
        elif part == "policy":
            said = detail(old[name], new[name])
            if said:
                yield Change(part, name, "changed", said)
        elif old[name] != new[name]:
            yield Change(part, name, "changed", detail(old[name], new[name]))


def _settings(bundle: Bundle) -> dict[str, Any]:
    written: dict[str, Any] = read_document(SETTINGS_FILE, bundle.files.texts[SETTINGS_FILE]).data
    return {name: value for name, value in written.items() if name != "revision"}


def _values(old: Any, new: Any) -> str:
    simple = not isinstance(old, list | dict) and not isinstance(new, list | dict)
    return f"{old} -> {new}" if simple else ""


def _tool_fields(old: CatalogTool, new: CatalogTool) -> str:
    derived = {"version", "schema_hash"}
    changed = [one.name for one in fields(old) if one.name not in derived]
    return ", ".join(name for name in changed if getattr(old, name) != getattr(new, name))


def _policy_parts(old: Policy, new: Policy) -> str:
    """Return the parts of a policy that differ in meaning or in text; its position in the file is ignored."""
    parts = {
        "effect": old.tree.effect != new.tree.effect,
        "scope": _scope(old.tree) != _scope(new.tree),
        "conditions": old.tree.clauses != new.tree.clauses,
        "title": (old.title, old.title_es) != (new.title, new.title_es),
    }
    return ", ".join(name for name, differs in parts.items() if differs)


def _scope(tree: pst.Template) -> tuple[Any, ...]:
    return tree.principal, tree.action, tree.resource


def _decisions(old: Bundle, new: Bundle) -> Iterator[Change]:
    """Return the decisions that differ over all cases; a case in both bundles is taken from the new one."""
    cases = {case.name: case for bundle in (old, new) for case in bundle.cases}
    tools = {**old.case_tools, **new.case_tools}
    engines = [DecisionEngine(with_tools(one, {**tools, **one.tools})) for one in (old, new)]
    for name, case in sorted(cases.items()):
        before, after = (_outlook(ask_case(case, engine)) for engine in engines)
        if before != after:
            yield Change("decision", name, "changed", f"{before} -> {after}")


def _outlook(verdict: Verdict) -> str:
    return f"{verdict.decision}({verdict.approval_class})" if verdict.approval_class else str(verdict.decision)

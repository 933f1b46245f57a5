"""Cedar schema of a bundle, generated from its catalog.

It has one action per tool, in the groups of its risk, effect and level, and a context type per tool. Classes and levels
are enumerated entity types, so that a typo in a policy is an error when the bundle is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

import cedarpy
from phylactery_chassis.inspection import FindingKind

from phylactery_riskgate.domain.facts.facts import NO_TOOL, PATHWAY, context_type
from phylactery_riskgate.domain.facts.inspected import FINDING
from phylactery_riskgate.domain.facts.types import EntityOf, FactType, Kind, RecordOf, Scalar, SetOf
from phylactery_riskgate.domain.model import ApprovalClass, CatalogTool, Pathway
from phylactery_riskgate.domain.policy.policies import APPROVED, CLASS

SENTINEL = NO_TOOL.name
"""An action that is not a tool and belongs to every group: without it a policy over an empty group is invalid."""

RISKS = ("low", "medium", "high", "critical")
EFFECTS = ("none", "read", "write", "irreversible")


DOES: Final = ("spends", "destroys", "guards")
"""What an entry may say that its calls do, as action groups does:spends and so on."""
REACHES: Final = ("own", "shared", "people", "public")


def action_groups(tool: CatalogTool) -> frozenset[str]:
    """Return every action group of a tool; irreversible implies write, and no effect implies read."""
    groups = {f"risk:{tool.risk}", f"effect:{tool.effect}", f"level:{tool.level}"}
    if tool.effect == "irreversible":
        groups.add("effect:write")
    if tool.effectless:
        groups.add("effect:none")
    if tool.reach is not None:
        groups.add(f"reach:{tool.reach}")
    groups.update(f"does:{name}" for name in DOES if getattr(tool, name))
    return frozenset(groups)


def group_names(levels: Iterable[str]) -> tuple[str, ...]:
    """Return all existing action groups."""
    return (
        *(f"risk:{risk}" for risk in RISKS),
        *(f"effect:{effect}" for effect in EFFECTS),
        *(f"level:{level}" for level in levels),
        *(f"reach:{reach}" for reach in REACHES),
        *(f"does:{name}" for name in DOES),
    )


def build_schema(
    tools: Mapping[str, CatalogTool],
    classes: Iterable[ApprovalClass],
    levels: tuple[str, ...],
    named: Mapping[str, CatalogTool] | None = None,
) -> cedarpy.Schema:
    """Build the schema.

    ``named`` are tools that a policy may name and the catalog does not contain: actions in no group, which no call has.

    Raises:
        ValueError: Cedar refuses it.
    """
    groups = group_names(levels)
    actions: dict[str, Any] = {name: {} for name in groups}
    actions["effect:none"] = {"memberOf": [{"id": "effect:read"}]}
    actions["effect:irreversible"] = {"memberOf": [{"id": "effect:write"}]}
    actions[SENTINEL] = _action(groups, context_type(NO_TOOL))
    for name, tool in tools.items():
        actions[name] = _action(sorted(action_groups(tool)), context_type(tool))
    for name, tool in (named or {}).items():
        actions.setdefault(name, _action((), context_type(tool)))
    enumerated = {
        CLASS: [one.name for one in classes],
        FINDING: [str(kind) for kind in FindingKind],
        PATHWAY: list(get_args(Pathway)),
    }
    entity_types = {**{name: {"enum": ids} for name, ids in enumerated.items()}, **_entity_types(levels)}
    return cedarpy.Schema.from_json_str(json.dumps({"": {"entityTypes": entity_types, "actions": actions}}))


def build_entity_schema(action: str, groups: Iterable[str], levels: tuple[str, ...]) -> cedarpy.Schema:
    """Build the part of the schema with which the entities for one action's requests are built.

    It contains the action with its groups and the entity types, and no other tool: building entities with a whole
    catalog of 200 tools takes twice as long. A thread has the approvals of a call as an attribute, which a bundle's
    policies cannot use: see policy.sets.
    """
    actions: dict[str, Any] = {name: {} for name in groups}
    actions[action] = {"memberOf": [{"id": name} for name in groups]}
    entity_types = _entity_types(levels)
    approved = {"type": "Set", "element": {"type": "String"}}
    entity_types["Thread"]["shape"] = {"type": "Record", "attributes": {APPROVED: approved}}
    written = {"": {"entityTypes": entity_types, "actions": actions}}
    return cedarpy.Schema.from_json_str(json.dumps(written))


def _entity_types(levels: tuple[str, ...]) -> dict[str, Any]:
    return {
        "Level": {"enum": list(levels)},
        "Tenant": {},
        "Group": {},
        "User": {
            "memberOfTypes": ["Group"],
            "shape": {
                "type": "Record",
                "attributes": {
                    "level": {"type": "Entity", "name": "Level"},
                    "tenant": {"type": "Entity", "name": "Tenant"},
                },
            },
        },
        "Thread": {"memberOfTypes": ["Tenant"]},
    }


def _action(groups: Iterable[str], context: RecordOf) -> dict[str, Any]:
    return {
        "memberOf": [{"id": name} for name in groups],
        "appliesTo": {"principalTypes": ["User"], "resourceTypes": ["Thread"], "context": _written(context)},
    }


def _written(fact: FactType) -> dict[str, Any]:
    if isinstance(fact, RecordOf):
        attributes = {
            name: {**_written(inside.type), "required": inside.required} for name, inside in fact.fields.items()
        }
        return {"type": "Record", "attributes": attributes}
    if isinstance(fact, SetOf):
        return {"type": "Set", "element": _written(fact.element)}
    if isinstance(fact, EntityOf):
        return {"type": "Entity", "name": fact.entity_type}
    return _written_scalar(fact)


def _written_scalar(fact: Scalar) -> dict[str, Any]:
    if fact.kind in {Kind.DECIMAL, Kind.DATETIME}:
        return {"type": "Extension", "name": str(fact.kind)}
    return {"type": str(fact.kind)}

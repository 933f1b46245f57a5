"""Asks Cedar one question, and believes only a clean answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import cedarpy

from phylactery_riskgate.domain.cedar_schema import SENTINEL, build_entity_schema, group_names
from phylactery_riskgate.domain.model import Json, Pathway
from phylactery_riskgate.domain.policies import Policy, parse_policies, policy_handle
from phylactery_riskgate.domain.policy_sets import PolicySets

_MAX_SUBJECTS = 1_024
_CONTEXT = json.JSONEncoder(check_circular=False)


@dataclass(frozen=True, slots=True)
class Subject:
    """Who asks and where, with everything policies may know of them."""

    subject: str
    tenant: str
    level: str
    groups: tuple[str, ...]
    thread: str
    thread_tenant: str
    pathway: Pathway = "unspecified"


@dataclass(frozen=True, slots=True)
class Answer:
    """What Cedar said: the policies that decided, sorted. ``clean`` is False where any policy failed to evaluate."""

    allowed: bool
    policy_ids: tuple[str, ...]
    clean: bool


class Question:
    """One user, thread and action, ready to be asked under several contexts.

    The entities are those of the subject alone, built with the schema: it brings the action groups, without which a
    policy over a group silently matches nothing.

    Raises:
        ValueError: the user or the thread is nothing the schema knows (an unknown level).
    """

    def __init__(self, schema: cedarpy.Schema, subject: Subject, action: str) -> None:
        self._entities = _entities_of(schema, subject)
        self._request = {
            "principal": {"type": "User", "id": subject.subject},
            "action": {"type": "Action", "id": action},
            "resource": {"type": "Thread", "id": subject.thread},
        }

    def ask(self, sets: PolicySets, context: Json) -> Answer:
        """Asks about every policy of some sets; the answer names policies, never a group of them.

        A group that is silent says enough: each of its policies was looked at, and none of them spoke or failed.
        """
        text = _CONTEXT.encode(context)
        answer = self.ask_once(sets.first, text)
        if not sets.groups:
            return answer
        if not answer.clean:
            return self.ask_once(sets.alone, text)
        named: list[str] = []
        for one in answer.policy_ids:
            if one not in sets.groups:
                named.append(one)
                continue
            members = self.ask_once(sets.groups[one], text)
            if not members.clean or not members.policy_ids:
                # The group spoke, and nobody in it did: there is no answer to believe.
                return Answer(allowed=False, policy_ids=(), clean=False)
            named += members.policy_ids
        return Answer(answer.allowed, tuple(sorted(named)), clean=True)

    def ask_once(self, policies: cedarpy.PolicySet, context: str) -> Answer:
        """Asks about one set, with the context as JSON text.

        An error in any policy makes the answer unclean: Cedar skips such a policy and may then allow.
        """
        result = cedarpy.is_authorized({**self._request, "context": context}, policies, self._entities)
        decision = result.decision
        diagnostics = result.diagnostics
        clean = decision is not cedarpy.Decision.NoDecision and not diagnostics.errors
        return Answer(clean and decision is cedarpy.Decision.Allow, tuple(sorted(diagnostics.reasons)), clean)


@lru_cache(maxsize=_MAX_SUBJECTS)
def _entities_of(schema: cedarpy.Schema, subject: Subject) -> cedarpy.Entities:
    """Builds the entities, once for all calls of a subject: a handle never changes, and the subject is all it holds."""
    return cedarpy.Entities.from_json_str(json.dumps(_entities(subject)), schema)


def _entities(subject: Subject) -> list[Json]:
    return [
        {
            "uid": {"type": "User", "id": subject.subject},
            "attrs": {
                "level": {"type": "Level", "id": subject.level},
                "tenant": {"type": "Tenant", "id": subject.tenant},
            },
            "parents": [{"type": "Group", "id": group} for group in subject.groups],
        },
        {
            "uid": {"type": "Thread", "id": subject.thread},
            "attrs": {},
            "parents": [{"type": "Tenant", "id": subject.thread_tenant}],
        },
    ]


def silent_groups(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Names the action groups over which a policy does not fire; there must be none.

    It is asked as every call is asked, with the sentinel, which is in every group, in the place of a tool.
    """
    names = group_names(levels)
    probes: Iterable[Policy] = (
        policy
        for index, name in enumerate(names)
        for policy in parse_policies(
            "probe",
            f'@id("{index}") @title("probe") permit (principal, action in Action::{json.dumps(name)}, resource);',
        )
    )
    handle = policy_handle(probes)
    schema = build_entity_schema(SENTINEL, names, levels)
    nobody = Subject("nobody", "none", levels[0], (), "none", "none")
    fired = Question(schema, nobody, SENTINEL).ask_once(handle, "{}").policy_ids
    return tuple(name for index, name in enumerate(names) if str(index) not in fired)

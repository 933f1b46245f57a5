"""Cedar authorization requests; only an answer without evaluation errors is accepted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import cedarpy
import orjson

from phylactery_riskgate.domain.model import Json, Pathway
from phylactery_riskgate.domain.policy.cedar_schema import SENTINEL, build_entity_schema, group_names
from phylactery_riskgate.domain.policy.policies import APPROVED, Policy, parse_policies, policy_handle
from phylactery_riskgate.domain.policy.sets import PolicySets

_MAX_SUBJECTS = 1_024
_MAX_ANSWERS = 2_048


class Subject(NamedTuple):
    """The requesting user and the thread, with everything that policies may use."""

    subject: str
    tenant: str
    level: str
    groups: tuple[str, ...]
    thread: str
    thread_tenant: str
    pathway: Pathway = "unspecified"


class Answer(NamedTuple):
    """Cedar's answer: the deciding policies, sorted. ``clean`` is False if any policy failed to evaluate."""

    allowed: bool
    policy_ids: tuple[str, ...]
    clean: bool


class Question:
    """One user, thread and action, to be evaluated under several contexts and approvals.

    The entities are those of the subject, built with the schema. The schema brings the action groups, without which a
    policy over a group silently matches nothing.
    """

    def __init__(self, schema: cedarpy.Schema, subject: Subject, action: str, answers: Answers | None = None) -> None:
        """Without ``answers``, this question alone keeps what it was answered."""
        self._schema, self._answers = schema, answers or Answers()
        self._subject = subject
        self._action = action
        self._request = {
            "principal": {"type": "User", "id": subject.subject},
            "action": {"type": "Action", "id": action},
            "resource": {"type": "Thread", "id": subject.thread},
        }

    def ask(self, sets: PolicySets, context: Json, satisfied: tuple[str, ...] = ()) -> Answer:
        """Evaluate every policy of some sets; the answer names policies, never a group of them.

        ``satisfied`` are the approval classes, which sets that do not use the thread find in the context only. A silent
        group is a sufficient answer: each of its policies was evaluated, and none of them matched or failed.

        Raises:
            ValueError: the user or the thread does not fit the schema (an unknown level).
        """
        text = orjson.dumps(context).decode()  # of strings, integers and booleans only: see facts.types.writer
        answer = self.ask_once(sets.first, text, satisfied)
        if not sets.groups:
            return answer
        if not answer.clean:
            return self.ask_once(sets.alone, text, satisfied)
        named: list[str] = []
        for one in answer.policy_ids:
            if one not in sets.groups:
                named.append(one)
                continue
            members = self.ask_once(sets.groups[one], text, satisfied)
            if not members.clean or not members.policy_ids:
                # The group matched but none of its policies did: there is no answer to trust.
                return Answer(allowed=False, policy_ids=(), clean=False)
            named += members.policy_ids
        return Answer(answer.allowed, tuple(sorted(named)), clean=True)

    def ask_once(self, policies: cedarpy.PolicySet, context: str, satisfied: tuple[str, ...] = ()) -> Answer:
        """Evaluate one set, with the context as JSON text.

        An error in any policy makes the answer unclean: Cedar skips such a policy and may then allow.

        Raises:
            ValueError: the user or the thread does not fit the schema (an unknown level).
        """
        asked = _Asked(policies, self._schema, self._subject, self._action, satisfied, _hash(context))
        known = self._answers.find(asked)
        if known is not None:
            return known
        entities = _entities_of(self._schema, self._subject, satisfied)
        result = cedarpy.is_authorized({**self._request, "context": context}, policies, entities)
        decision = result.decision
        diagnostics = result.diagnostics
        clean = decision is not cedarpy.Decision.NoDecision and not diagnostics.errors
        answer = Answer(clean and decision is cedarpy.Decision.Allow, tuple(sorted(diagnostics.reasons)), clean)
        if clean:
            self._answers.keep(asked, answer)
        return answer


class _Asked(NamedTuple):
    """Everything that Cedar's answer depends on: it uses no clock, no randomness, and no other request.

    The handles are compared by identity, as they never change. The context, which can contain arguments, is represented
    by its hash.
    """

    policies: cedarpy.PolicySet
    schema: cedarpy.Schema
    subject: Subject
    action: str
    satisfied: tuple[str, ...]
    context: bytes


class Answers:
    """A cache of recent clean answers, as a call is evaluated again on redemption; the oldest half is evicted first."""

    def __init__(self) -> None:
        self._new: dict[_Asked, Answer] = {}
        self._old: dict[_Asked, Answer] = {}

    def find(self, asked: _Asked) -> Answer | None:
        """Return the cached answer to the same question, or None."""
        return self._new.get(asked) or self._old.get(asked)

    def keep(self, asked: _Asked, answer: Answer) -> None:
        """Cache an answer; concurrent threads may lose some."""
        if len(self._new) >= _MAX_ANSWERS:
            self._old, self._new = self._new, {}
        self._new[asked] = answer


def _hash(context: str) -> bytes:
    return hashlib.sha256(context.encode()).digest()


@lru_cache(maxsize=_MAX_SUBJECTS)
def _entities_of(schema: cedarpy.Schema, subject: Subject, satisfied: tuple[str, ...]) -> cedarpy.Entities:
    """Build the entities, once for all calls of a subject: a handle never changes, and they depend on nothing else."""
    return cedarpy.Entities.from_json_str(json.dumps(_entities(subject, satisfied)), schema)


def _entities(subject: Subject, satisfied: tuple[str, ...]) -> list[Json]:
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
            "attrs": {APPROVED: satisfied},
            "parents": [{"type": "Tenant", "id": subject.thread_tenant}],
        },
    ]


def silent_groups(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Return the action groups over which a policy does not match; there must be none.

    The check is evaluated as every call is, with the sentinel action, which is in every group, in place of a tool.
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

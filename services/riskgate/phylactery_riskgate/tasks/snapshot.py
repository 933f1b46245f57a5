"""What a decision was told of its task, as its record keeps it: the same facts count as long as the call does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from phylactery_riskgate.domain.intent.model import UNSHOWN, TaskFacts
from phylactery_riskgate.domain.policy.evidence import LOST, TaskReader, known
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.audit_search import find_entry

TASK = "/task"
"""Where a record keeps it among its values: the user's own words are in it, and whoever erases the values erases it."""
TASK_ID = "task_id"
"""The name in a record under which it says which task the call named; that one did is never erased."""


@dataclass(frozen=True, slots=True)
class Told:
    """The task a call named, empty for none, and what it told of the call."""

    task_id: str
    facts: TaskFacts

    @property
    def reader(self) -> TaskReader | None:
        """What tells the facts to the engine, None for a call without a task."""
        return known(self.facts) if self.task_id else None


NOT_TOLD = Told("", UNSHOWN)


def told_body(task_id: str) -> dict[str, str]:
    """Return what every record about a call says of its task."""
    return {TASK_ID: task_id} if task_id else {}


def ask_body(facts: TaskFacts) -> dict[str, Any]:
    """Return what a record says of the ask a call uses: which, how many effects it has had, how many are left.

    Left is null where it allows as many as the set it names holds.
    """
    return {"ask": {"id": facts.ask, "used": facts.used, "left": facts.left}} if facts.ask else {}


def told_values(told: Told) -> dict[str, Any]:
    """Return what a decision was told as a value of its record."""
    return {TASK: {"id": told.task_id, "facts": told.facts.to_json()}} if told.task_id else {}


def recorded_told(values: Mapping[str, Any]) -> Told:
    """Read what told_values wrote."""
    written = values.get(TASK)
    return NOT_TOLD if written is None else Told(written["id"], TaskFacts.from_json(written["facts"]))


def told_of(connection: Connection, tenant: str, place: Place, values: Mapping[str, Any] | None) -> Told:
    """Return what a decision was told, by the values of its record, None where there are none any more.

    Where a task told something, and nobody knows what, the worst of everything counts.
    """
    if values is not None:
        return recorded_told(values)
    found = find_entry(connection, tenant, place)
    record = {} if found is None else json.loads(found.stored.record)
    return Told(record[TASK_ID], LOST) if record.get(TASK_ID) else NOT_TOLD

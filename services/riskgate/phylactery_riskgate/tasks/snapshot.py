"""The task facts of a decision as its record stores them: the same facts apply for the lifetime of the call."""

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
"""JSON Pointer of the task facts among the values of a record; erasable, since they contain the user's words."""
TASK_ID = "task_id"
"""Field of a record with the id of the call's task, which is never erased."""


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """The id of a call's task, empty for none, and the task's facts about the call."""

    task_id: str
    facts: TaskFacts

    @property
    def reader(self) -> TaskReader | None:
        """Return the reader that provides the facts to the engine, or None for a call of no task and no form."""
        return known(self.facts) if self.kept else None

    @property
    def kept(self) -> bool:
        """Return True if there is anything to record."""
        return bool(self.task_id) or self.facts.form_run is not None


NO_SNAPSHOT = TaskSnapshot("", UNSHOWN)


def told_body(task_id: str) -> dict[str, str]:
    """Return the task field of every record about a call."""
    return {TASK_ID: task_id} if task_id else {}


def ask_body(facts: TaskFacts) -> dict[str, Any]:
    """Return the record's fields about the ask a call uses: id, effects so far, effects left.

    Left is null if it allows as many as the set it names contains.
    """
    return {"ask": {"id": facts.ask, "used": facts.used, "left": facts.left}} if facts.ask else {}


def told_values(told: TaskSnapshot) -> dict[str, Any]:
    """Return the task facts as a value of the decision's record."""
    return {TASK: {"id": told.task_id, "facts": told.facts.to_json()}} if told.kept else {}


def recorded_snapshot(values: Mapping[str, Any]) -> TaskSnapshot:
    """Parse what told_values wrote."""
    written = values.get(TASK)
    return NO_SNAPSHOT if written is None else TaskSnapshot(written["id"], TaskFacts.from_json(written["facts"]))


def snapshot_of(connection: Connection, tenant: str, place: Place, values: Mapping[str, Any] | None) -> TaskSnapshot:
    """Return the task facts of a decision from the values of its record, which are None once erased.

    If there was a task whose facts are lost, the worst case of each fact applies.
    """
    if values is not None:
        return recorded_snapshot(values)
    found = find_entry(connection, tenant, place)
    record = {} if found is None else json.loads(found.stored.record)
    return TaskSnapshot(record[TASK_ID], LOST) if record.get(TASK_ID) else NO_SNAPSHOT

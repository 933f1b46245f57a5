"""The task a call names, and the source of its facts: the task itself or an earlier decision about the call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import NotFound, PermissionDenied
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import Approval
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.proposals import key_of
from phylactery_riskgate.decisions.requests import EvaluateInput
from phylactery_riskgate.domain.intent.facts import IndexReader
from phylactery_riskgate.domain.intent.model import UNSHOWN, FormRun
from phylactery_riskgate.domain.policy.evidence import TaskReader, known
from phylactery_riskgate.store import decisions as decision_rows
from phylactery_riskgate.store.decisions import DecisionRecord
from phylactery_riskgate.tasks.snapshot import NO_SNAPSHOT, TaskSnapshot


class TaskSource(Protocol):
    """The task store."""

    async def reader_for(self, who: Principal, task_id: str, thread_id: str) -> IndexReader:
        """Return the reader of call facts from the input of a task of this user and thread.

        Raise NotFound TASK_NOT_FOUND if there is no such open task.
        """
        ...


@dataclass(frozen=True, slots=True)
class TaskRef:
    """The task of a call: its id (empty for none) and the reader of its facts.

    ``recorded`` is True if the facts are those of an earlier decision about the call, which no catalog computes again.
    """

    task_id: str = ""
    reader: TaskReader | None = None
    recorded: bool = False


NO_TASK = TaskRef()


class TaskResolver:
    """Resolver of a call's task and the reader of its facts."""

    def __init__(self, core: DecisionContext, tasks: TaskSource) -> None:
        self._core, self._tasks = core, tasks

    async def of_task(self, who: Principal, asked: EvaluateInput) -> TaskRef:
        """Return the task a call names, with the reader of its facts so far.

        A call that was decided while its task was open gets the same answer after the task's end. Raise NotFound
        TASK_NOT_FOUND and Unavailable STORE_UNAVAILABLE.
        """
        form = _form_run(who, asked)
        if not asked.task_id:
            return NO_TASK if form is None else TaskRef(reader=known(replace(UNSHOWN, form_run=form)))
        try:
            reader = await self._tasks.reader_for(who, asked.task_id, asked.thread_id)
            return TaskRef(asked.task_id, replace(reader, form_run=form))
        except NotFound:
            told = await self._core.database.read(partial(self._told_before, who=who, asked=asked))
            if told.task_id != asked.task_id:
                raise
            return TaskRef(told.task_id, told.reader, recorded=True)

    async def of_approval(self, who: Principal, asked: EvaluateInput) -> tuple[TaskRef, Approval | None]:
        """Return the approval a call names, and the task facts of the decision that requested it.

        Both are empty if the approval is unknown or another user's.
        """
        return await self._core.database.read(partial(self._standing, who=who, asked=asked))

    def _told_before(self, connection: Connection, who: Principal, asked: EvaluateInput) -> TaskSnapshot:
        key = key_of(who, asked.run_id, asked.call.tool_call_id)
        return self._told(connection, decision_rows.find_call(connection, key, ""))

    def _standing(
        self, connection: Connection, who: Principal, asked: EvaluateInput
    ) -> tuple[TaskRef, Approval | None]:
        approval = self._core.find_approval(connection, who.tenant, asked.approval_id)
        if approval is None or approval.requester != who.subject:
            return NO_TASK, None
        told = self._told(connection, decision_rows.find_decision(connection, who.tenant, approval.decision_id))
        return TaskRef(told.task_id, told.reader, recorded=True), approval

    def _told(self, connection: Connection, record: DecisionRecord | None) -> TaskSnapshot:
        return NO_SNAPSHOT if record is None else self._core.snapshot_of(connection, record)


def _form_run(who: Principal, asked: EvaluateInput) -> FormRun | None:
    """Return the form whose run submits a call. Raise PermissionDenied ROLE_REQUIRED for a user's own word.

    Whoever fills in a form cannot vouch for it: a guest with a token would give themselves the tools of forms.
    """
    told = asked.form_run
    if told is None:
        return None
    if not who.delegated:
        why = "form_run is said by the delegate that serves the form; leave it out"
        raise PermissionDenied("ROLE_REQUIRED", why, metadata={"role": Role.DELEGATE})
    return FormRun(told.form, told.version, told.peer)


async def shown(tasks: TaskSource, who: Principal, task_id: str, thread_id: str) -> TaskReader:
    """Return the reader of call facts from the input of a task. Raise NotFound TASK_NOT_FOUND."""
    return await tasks.reader_for(who, task_id, thread_id)

"""RiskGate for one turn: earlier outcomes and results are reported before a new call is evaluated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import rfc8785
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crashpoints import reach
from phylactery_forms.definitions.model import Form
from phylactery_understanding.interpretation.model import MAX_BACK, Interpretation
from pydantic import ValidationError

from phylactery_agent.ports import CallContext, GateDecision, GateRefusedError, ProposedCall
from phylactery_agent.ports.services import TaskGate
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.intake.authorship import Said
from phylactery_agent.runtime.intake.interpretation import Interpreter
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.turn.context_loader import drop
from phylactery_agent.runtime.turn.tasks import OpenedTask, Result, TaskStore, observation
from phylactery_agent.tools.executor import Executor
from phylactery_agent.tools.specs import FILE_INFO, WRITE_FILE, WriteFileArguments

MAX_CONTINUED: Final = 8
"""Maximum number of consecutive messages of a run that count as one conversation about one thing."""
_log = get_logger("reporting")
LOOKED: Final = ".info"
"""Suffix, after a call's id, that forms the id of the look at the file the call would replace."""
_NOT_SHOWN: Final = "RESULT_NOT_SHOWN"
_OVER: Final = frozenset({"TASK_NOT_FOUND", "TASK_ENDED"})


class TurnTask:
    """The task of one turn: the one its words open or, without any, the current task of its run.

    The first evaluated call opens it, so that small talk opens none. A run is suspended to ask the person something:
    their answer continues the task of the question, a bounded number of times, because "yes, do it" refers to what was
    asked.
    """

    def __init__(
        self,
        gate: TaskGate,
        store: TaskStore,
        lease: Lease,
        words: Said | str,
        *,
        opens_run: bool,
        fresh: bool = False,
        changes: str = "",
        interpreter: Interpreter | None = None,
        said_in: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        """Take the words of this turn, empty for an answer to an approval; a plain text is all the person's own.

        fresh means that the run was never served before, so that it has no task. changes is the task of an earlier run
        that the words that open this one change, repeat or take back. interpreter reads the words before they open a
        task; None leaves them to RiskGate's rules. said_in returns the words of an earlier turn, which these words
        continue.
        """
        self._said_in = said_in
        self._interpreter = interpreter
        self._gate, self._store, self._lease = gate, store, lease
        self._words = words if isinstance(words, Said) else Said(words)
        self._opens_run, self._fresh = opens_run, fresh
        self._changes = changes
        self._known: str | None = None
        self._finding: asyncio.Task[str] | None = None

    def expect(self) -> None:
        """Open the task in the background because a call is likely to be evaluated."""
        self._finding = self._finding or asyncio.get_running_loop().create_task(self._find())

    def close(self) -> None:
        """End the turn's use of the task; a task opened in vain expires at RiskGate by itself."""
        if self._finding is not None:
            drop(self._finding)

    async def current(self) -> str:
        """Return the task's id, or an empty string if there is none. Raise GateUnavailableError, GateRefusedError."""
        if self._known is None:
            finding, self._finding = self._finding, None
            self._known = await (finding or self._find())
        return self._known

    async def _find(self) -> str:
        opened = () if self._fresh else await self._store.of_run(self._lease.run_id)
        newest = opened[-1] if opened else None
        if newest is not None and (not self._words.text or newest.turn_id == self._lease.turn_id):
            return newest.task_id
        if not self._words.text:
            return ""
        continues = newest.task_id if newest is not None and len(opened) % MAX_CONTINUED else ""
        chain = opened[len(opened) - len(opened) % MAX_CONTINUED :] if continues else ()
        if newest is None and self._opens_run:
            continues = self._changes
        task_id = await self._begin(continues, chain)
        reach("agent.0")
        await self._store.note(self._lease, task_id)
        return task_id

    async def _interpreted(self, chain: Sequence[OpenedTask]) -> Interpretation | None:
        if self._interpreter is None:
            return None
        said_in = self._said_in
        earlier = [await said_in(one.turn_id) for one in chain[-MAX_BACK:]] if said_in is not None else []
        return await self._interpreter.read(self._words.own, earlier)

    async def _begin(self, continues: str, chain: Sequence[OpenedTask]) -> str:
        """Open the task under a request id derived from run and turn alone, so that opening it again is idempotent."""
        lease = self._lease
        request_id = lease.run_id if self._opens_run else f"{lease.run_id}:{lease.turn_id}"
        begin = partial(
            self._gate.begin_task,
            request_id,
            thread_id=lease.thread_id,
            words=self._words.text,
            **self._words.marks,
            interpretation=await self._interpreted(chain),
        )
        try:
            return await begin(continues=continues)
        except GateRefusedError as error:
            if not continues or error.reason not in _OVER:
                raise
        # The answer or correction came after RiskGate had discarded the earlier task: use the new words alone.
        return await begin(continues="")


class ReplacedFiles:
    """Files that calls of a turn would replace: RiskGate is shown them before it evaluates the call."""

    def __init__(self, executor: Executor, store: TaskStore, lease: Lease) -> None:
        self._executor, self._store, self._lease = executor, store, lease

    async def show(self, call: ProposedCall, task: TurnTask) -> bool:
        """Queue the file_info result of the file a call would replace; return True if there is one.

        Raise GateUnavailableError, GateRefusedError, LeaseLostError.
        """
        path = _replaced_path(call)
        owner = self._lease.owner
        found = await self._executor.file_to_replace(owner.tenant, owner.user_id, path) if path else None
        task_id = await task.current() if found else ""
        if found is None or not task_id:
            return False
        result = Result(rfc8785.dumps({"path": path}).decode(), found, failed=False)
        looked = f"{call.tool_call_id}{LOOKED}"
        shown = observation(task_id, self._lease.run_id, FILE_INFO.name, looked, result, spec=FILE_INFO)
        await self._store.show_before(self._lease, call.tool_call_id, shown)
        return True


def _replaced_path(call: ProposedCall) -> str:
    """Return the path a call would replace, or an empty string if it appends or is not a valid write.

    RiskGate refuses an invalid write.
    """
    if call.tool != WRITE_FILE.name:
        return ""
    try:
        args = WriteFileArguments.model_validate_json(call.canonical_args)
    except ValidationError:
        return ""
    return "" if args.append else args.path


class ReportingGate:
    """Implementation of ports.Gate that delivers the thread's reports and results before each Evaluate.

    See docs/effects.md, section 11.
    """

    def __init__(
        self,
        gate: TaskGate,
        delivery: Delivery,
        lease: Lease,
        task: TurnTask,
        replaced: ReplacedFiles,
        *,
        changed_run: str = "",
        form: Form | None = None,
    ) -> None:
        """Take the gate and its helpers.

        changed_run is the earlier run whose request the turn changes, or empty. form is the one that the turn serves:
        no call is told as the submission of another one, whatever the graph's state says.
        """
        self._form = form
        self._gate, self._delivery, self._lease, self._task = gate, delivery, lease, task
        self._replaced, self._changed_run = replaced, changed_run
        # Everything but evaluate goes to RiskGate unchanged.
        self.redeem = gate.redeem
        self.get_approval, self.approve, self.reject = gate.get_approval, gate.approve, gate.reject
        self.cancel = gate.cancel
        self.public_keys, self.issuer = gate.public_keys, gate.issuer

    def expect(self) -> None:
        """Open the task in the background because a call is likely to be evaluated in this turn."""
        self._task.expect()

    async def open_task(self) -> None:
        """Open the turn's task although no call is evaluated: its words take something back.

        Raise GateUnavailableError. A refusal by RiskGate does not stop the turn: it means that nothing is left to take
        back.
        """
        try:
            await self._task.current()
        except GateRefusedError as error:
            _log.info("nothing left to withdraw", reason=error.reason)

    def close(self) -> None:
        """End the gate's use of the task at the end of the turn."""
        self._task.close()

    async def evaluate(self, call: ProposedCall, where: CallContext) -> GateDecision:
        """Deliver outstanding reports and results, then evaluate a call of the turn's task.

        Raise GateUnavailableError if any of these fails, GateRefusedError RESULT_NOT_SHOWN if RiskGate rejected a
        result of this run: it cannot judge by what it was not shown.
        """
        key = self._lease.thread_key
        await self._delivery.flush("outcome", key)
        for shown in filter(None, (self._changed_run, self._lease.run_id)):  # a task may continue another run's
            await self._delivery.flush("observation", key, shown)
        if await self._replaced.show(call, self._task):
            await self._delivery.flush("observation", key, self._lease.run_id)
        if await self._delivery.refused("observation", key, self._lease.run_id):
            raise GateRefusedError(_NOT_SHOWN, "RiskGate did not take the result of an earlier call of this run")
        run, form = where.form_run, self._form
        if run is not None and (form is None or (run.form, run.version) != (form.id, form.hash)):
            where = replace(where, form_run=None)
        return await self._gate.evaluate(call, where, task_id=await self._task.current())

"""Sessions: a host's events as the life of tasks and calls under the guard."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from phylactery_client.errors import InvalidRequestError, NotFoundError, PhylacteryError
from phylactery_client.guard import Blocked, Guard, GuardedTask, Permitted, ToolFailedError, Waits, safe_id

from phylactery_hooks import hosts
from phylactery_hooks.hosts import Answer, Event, Kind
from phylactery_hooks.state import CallState, SessionState, State, TaskState, WaitingState
from phylactery_hooks.translation import Proposal, translate
from phylactery_hooks.workspace import Workspace

KEEP_SECONDS: Final = 3_600
"""How long a later request may continue an ended one: as long as RiskGate lets it."""
_READS: Final = frozenset({"shell_read", "file_read", "agent_step", "web_fetch", "web_search"})
_BINARY: Final = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")
_BINARY_CHARACTERS: Final = 10_000
_NAMED: Final = r"\s+(ap_[A-Za-z0-9_\-]+)\s*[.!]?\s*"  # the id alone tells an answer from an answer to the model
_YES: Final = re.compile(rf"\s*(?:approve|approved|apruebo|aprobar|aprobado){_NAMED}", re.IGNORECASE)
_NO: Final = re.compile(rf"\s*(?:reject|rejected|rechazo|rechazar|rechazado){_NAMED}", re.IGNORECASE)


class Sessions:
    """Serves events.

    ``kept`` are files that no session may write or read unasked, such as the gate's token; ``guarded`` are files that
    no session may write, such as the hook itself.
    """

    def __init__(
        self, guard: Guard, state: State, *, kept: Iterable[str], guarded: Iterable[str] = (), answer_in_chat: bool
    ) -> None:
        self._guard, self._state = guard, state
        self._kept, self._guarded_files = tuple(kept), tuple(guarded)
        self._answer_in_chat = answer_in_chat
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks: dict[str, GuardedTask] = {}
        self._permitted: dict[tuple[str, str], Permitted] = {}

    async def serve(self, event: Event, project: str) -> Answer:
        """Return the answer to an event. Raise PhylacteryError if RiskGate does not answer."""
        name = safe_id(f"{event.host}.{event.session_id}")
        session = self._state.session(name, project or event.directory)
        if event.kind is Kind.BEFORE:
            return await self._before(event, name, session)
        async with self._locks[name]:
            try:
                if event.kind is Kind.WORDS:
                    return await self._words(event, name, session)
                if event.kind in {Kind.AFTER, Kind.FAILED}:
                    return await self._after(event, name, session)
                await self._stop(name, session, ended=event.kind is Kind.END)
                return Answer()
            finally:
                self._state.save()

    async def undelivered(self, event: Event) -> None:
        """Report a permitted call in doubt: the hook is gone, and the host may or may not have run the tool."""
        name = safe_id(f"{event.host}.{event.session_id}")
        session = self._state.sessions.get(name)
        if session is None or event.kind is not Kind.BEFORE:
            return
        async with self._locks[name]:
            key = event.tool_call_id or self._key_of(event, session)
            if key in session.running:
                await self._doubt(name, session, key)
                self._state.save()

    async def _words(self, event: Event, name: str, session: SessionState) -> Answer:
        told = await self._answered(event.words, name, session)
        previous, request_id = session.current, f"hook-{secrets.token_hex(12)}"
        begun = await self._begin(event.words, name, request_id, session.last_task)
        if begun.id:
            self._tasks[begun.id] = begun
        session.current = TaskState(begun.id, request_id)
        session.last_task = begun.id or session.last_task
        if previous is not None:
            await self._leave(name, session, previous)
        return hosts.noted(event, told) if told else Answer()

    async def _begin(self, words: str, thread: str, request_id: str, continues: str) -> GuardedTask:
        try:
            return await self._guard.begin(
                words, thread_id=thread, request_id=request_id, continues_task_id=continues, keep_seconds=KEEP_SECONDS
            )
        except NotFoundError:
            if not continues:
                raise
            return await self._begin(words, thread, request_id, "")
        except InvalidRequestError:  # too long, or not text that can be kept: then writes are asked about
            return self._guard.without_words(thread, request_id=request_id)

    async def _before(self, event: Event, name: str, session: SessionState) -> Answer:
        workspace = self._workspace(session, event.directory)
        proposal = await asyncio.to_thread(translate, event.host, event.tool, event.given, workspace)
        digest = self._state.digest(proposal.tool, proposal.arguments)
        waiting = session.waiting.get(digest)
        task = self._task_of(name, session, waiting.task_id if waiting else None)
        outcome = await task.permit(
            proposal.tool,
            proposal.arguments,
            tool_call_id=waiting.call_id if waiting else event.tool_call_id or f"g-{secrets.token_hex(12)}",
            run_id=waiting.run_id if waiting else "",
            approval_id=waiting.approval_id if waiting else "",
        )
        if isinstance(outcome, Permitted):
            session.waiting.pop(digest, None)
            return self._permit(event, name, session, proposal, outcome)
        if isinstance(outcome, Waits):
            session.waiting[digest] = WaitingState(
                outcome.tool_call_id, task.id, task.run_id, outcome.approval_id, outcome.approval_class
            )
            self._state.save()
            return self._asked(event, outcome, proposal)
        if waiting is not None and outcome.code != "GATE_UNAVAILABLE":
            session.waiting.pop(digest, None)
            self._state.save()
        return hosts.denied(event, _why(outcome, proposal))

    def _permit(
        self, event: Event, name: str, session: SessionState, proposal: Proposal, permitted: Permitted
    ) -> Answer:
        bound = proposal.input_of(permitted.arguments)
        key = event.tool_call_id or permitted.tool_call_id
        session.running[key] = CallState(
            tool=permitted.tool,
            call_id=permitted.tool_call_id,
            task_id=permitted.task.id,
            run_id=permitted.run_id,
            execution_id=permitted.execution_id,
            directory=event.directory,
            digest=self._state.digest(event.tool, event.bound and bound),
        )
        self._permitted[name, key] = permitted
        self._state.save()
        return hosts.allowed(event, bound, f"RiskGate permitted it ({permitted.tool}): {proposal.reason}.")

    async def _after(self, event: Event, name: str, session: SessionState) -> Answer:
        key = event.tool_call_id or self._key_of(event, session)
        call = session.running.pop(key, None)
        if call is None:
            return hosts.refused(
                f"{event.tool} ran without a permit of this hook; its result is not shown to RiskGate."
            )
        permitted = self._permitted.pop((name, key), None) or self._rejoined(event, name, session, call)
        if call.digest != self._state.digest(event.tool, event.bound):
            await permitted.ended(error="the host ran other arguments than RiskGate bound")
            self._guard.stop(call.task_id, "a tool ran with other arguments than RiskGate bound")
            return hosts.refused(f"{event.tool} ran with other arguments than RiskGate bound; this request is stopped.")
        if event.kind is Kind.FAILED:
            text = event.result if isinstance(event.result, str) else "failed"
            stopped = await permitted.ended(error=ToolFailedError(text) if call.tool in _READS else text)
        else:
            stopped = await permitted.ended(_shown(event.result))
        await self._close_paused(name, session)
        return (
            hosts.refused(f"this request is stopped: {stopped}. Tell the user to ask again.") if stopped else Answer()
        )

    async def _stop(self, name: str, session: SessionState, *, ended: bool) -> None:
        for key in list(session.running):
            await self._doubt(name, session, key)
        current, session.current = session.current, None
        if ended:
            session.waiting.clear()
        if current is not None:
            await self._leave(name, session, current)
        await self._close_paused(name, session)
        if ended:
            self._state.sessions.pop(name, None)

    async def _leave(self, name: str, session: SessionState, task: TaskState) -> None:
        """End a task, or keep it open for its calls that wait or run."""
        if task.task_id in session.needed():
            session.paused.append(task)
        else:
            await self._end(name, task)

    async def _close_paused(self, name: str, session: SessionState) -> None:
        needed = session.needed()
        for task in [one for one in session.paused if one.task_id not in needed]:
            session.paused.remove(task)
            await self._end(name, task)

    async def _end(self, name: str, task: TaskState) -> None:
        guarded = self._guarded(name, task)
        self._tasks.pop(task.task_id, None)
        await guarded.end()

    async def _doubt(self, name: str, session: SessionState, key: str) -> None:
        call = session.running.pop(key)
        permitted = self._permitted.pop((name, key), None)
        if permitted is None:
            task = self._task_of(name, session, call.task_id)
            permitted = task.rejoin(
                call.tool, "{}", tool_call_id=call.call_id, run_id=call.run_id, execution_id=call.execution_id
            )
        await permitted.task.settle_doubt(permitted)
        permitted._open = False  # noqa: SLF001 - its outcome is reported
        await permitted.task.release()

    def _rejoined(self, event: Event, name: str, session: SessionState, call: CallState) -> Permitted:
        """Return a permitted call after a restart of the helper, with its arguments as they were."""
        workspace = self._workspace(session, call.directory)
        arguments = translate(event.host, event.tool, event.given, workspace).arguments
        return self._task_of(name, session, call.task_id).rejoin(
            call.tool,
            json.dumps(arguments),
            tool_call_id=call.call_id,
            run_id=call.run_id,
            execution_id=call.execution_id,
        )

    def _key_of(self, event: Event, session: SessionState) -> str:
        """Return the oldest running call with this input, for hosts that name no call."""
        digest = self._state.digest(event.tool, event.bound)
        return next((key for key, one in session.running.items() if one.digest == digest), "")

    def _task_of(self, name: str, session: SessionState, task_id: str | None) -> GuardedTask:
        """Return the task with an id, or the current one; without any, calls are decided without words."""
        found = session.current
        if task_id is not None:
            found = next((one for one in session.tasks() if one.task_id == task_id), TaskState(task_id, "none"))
        return self._guarded(name, found or TaskState("", f"hook-{name}"[:128]))

    def _workspace(self, session: SessionState, directory: str) -> Workspace:
        return Workspace(session.workspace, directory, kept=self._kept, guarded=self._guarded_files)

    def _guarded(self, name: str, task: TaskState) -> GuardedTask:
        if not task.task_id:
            return self._guard.without_words(name, request_id=safe_id(task.run_id))
        if task.task_id not in self._tasks:
            self._tasks[task.task_id] = self._guard.existing(
                task.task_id, thread_id=name, request_id=task.run_id, keep_seconds=KEEP_SECONDS
            )
        return self._tasks[task.task_id]

    def _asked(self, event: Event, waits: Waits, proposal: Proposal) -> Answer:
        how = f"run `riskgate approvals approve {waits.approval_id}`"
        if self._answer_in_chat and waits.approval_class == "self":
            how += f" in a terminal, or answer “approve {waits.approval_id}” here"
        return hosts.denied(
            event,
            f"RiskGate asks a person first: {proposal.reason} ({waits.tool}). Do not try another way. Ask the user to "
            f"{how}; once they have, make exactly the same call again. Approval {waits.approval_id}.",
            shown=f"RiskGate: {waits.question} To allow exactly this, {how}.",
        )

    async def _answered(self, words: str, name: str, session: SessionState) -> str:
        """Answer an approval that the user's words name, and return what the model is told of it."""
        yes, no = _YES.fullmatch(words), _NO.fullmatch(words)
        found = yes or no
        if found is None or not self._answer_in_chat:
            return ""
        waiting_ones = session.waiting.values()
        open_ones = [one for one in waiting_ones if one.approval_class == "self" and one.approval_id == found[1]]
        if len(open_ones) != 1:
            return "RiskGate: no approval was answered; the user has to name one that waits in this session."
        (waiting,) = open_ones
        try:
            if no:
                await self._guard.gate.reject(waiting.approval_id, thread_id=name)
                return f"RiskGate: the user rejected {waiting.approval_id}. Do not make this call."
            seen = await self._guard.gate.get_approval(waiting.approval_id)
            await self._guard.gate.approve(seen.id, args_hash=seen.args_hash, code=seen.code, thread_id=name)
        except PhylacteryError as error:
            return f"RiskGate: {waiting.approval_id} was not answered: {error.message}"
        return f"RiskGate: the user approved {waiting.approval_id}. Make exactly the same call again."


def _shown(result: Any) -> Any:
    """Return a result without the bytes of pictures and the like, which hold no words and may be too large to show."""
    if isinstance(result, str) and len(result) > _BINARY_CHARACTERS and _BINARY.fullmatch(result):
        return f"(binary, sha256:{hashlib.sha256(result.encode()).hexdigest()})"
    if isinstance(result, list):
        return [_shown(one) for one in result]
    if isinstance(result, dict):
        return {key: _shown(one) for key, one in result.items()}
    return result


def _why(blocked: Blocked, proposal: Proposal) -> str:
    return f"RiskGate does not allow it: {proposal.reason}. {blocked.message}"

"""A user's request under guard: every call of it goes evaluate, wait, redeem, verify, execute, report, observe."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from phylactery_client.errors import (
    AlreadyExistsError,
    CancelledByServerError,
    DeadlineError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
    PhylacteryError,
    ServiceFaultError,
    UnavailableError,
)
from phylactery_client.guard.connection import GuardConnection
from phylactery_client.guard.outcomes import Blocked, GuardError, Outcome, Ran, ToolFailedError, Waits
from phylactery_client.guard.running import finished, in_thread, is_async, uncancelled
from phylactery_client.guard.values import (
    NotShowable,
    arguments_text,
    edited_id,
    execution_id_of,
    result_facts,
    safe_id,
    shown,
)
from phylactery_client.receipts import ReceiptError
from phylactery_client.results import Approval, ApprovalArgument, Evaluation, Reason, Redemption
from phylactery_client.riskgate import ToolCall

_log = logging.getLogger("phylactery_client.guard")

Execute = Callable[[dict[str, Any]], Any]
"""A tool: it gets the bound arguments. A coroutine function is awaited; any other runs in a thread of its own."""
Show = Callable[[Any], Any]
"""Return what a model will see of a result: text, or a JSON value."""

_AWAY = (UnavailableError, DeadlineError, CancelledByServerError, ServiceFaultError)
_NOT_THIS_ONE = (AlreadyExistsError, FailedPreconditionError, NotFoundError, PermissionDeniedError)
"""Errors of a named approval after which the call is evaluated for what it is itself."""
_ATTEMPTS = 3


@dataclass(slots=True)
class Permitted:
    """A call that may run once, now, with exactly these arguments; tell ``ended`` what came of it.

    For hosts that run the tool themselves. arguments are those RiskGate bound; every other is not permitted.
    """

    task: GuardedTask = field(repr=False)
    tool: str
    arguments_json: str = field(repr=False)
    execution_id: str
    tool_call_id: str
    run_id: str
    _open: bool = field(default=True, repr=False)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the bound arguments."""
        arguments: dict[str, Any] = json.loads(self.arguments_json)
        return arguments

    async def ended(self, result: Any = None, *, error: BaseException | str | None = None) -> str:
        """Report and show what came of the call; return why its task stopped, empty if it goes on.

        result is what a model will see, text or a JSON value. error is what the tool raised, or its text: a
        ToolFailedError (or one of the guard's ``failures``) had no effect, any other leaves the effect in doubt. The
        first report counts. It is completed even if the caller is cancelled.
        """
        if not self._open:
            return self.task.stopped
        self._open = False
        try:
            return await uncancelled(self.task.settle(self, result, error))
        finally:
            await self.task.release()


class GuardedTask:
    """One request of a user, as Guard.task begins it. It belongs to the event loop it was begun in."""

    def __init__(
        self, guard: GuardConnection, *, task_id: str, thread_id: str, run_id: str, keep_seconds: int = 0
    ) -> None:
        """Take a task that was begun; with an empty task_id it is a session without the user's words."""
        self._guard = guard
        self.id = task_id
        self.thread_id = safe_id(thread_id)
        self.run_id = safe_id(run_id)
        self._keep_seconds = keep_seconds
        self._waiting: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self._running = 0
        self._entering = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._later: set[asyncio.Task[None]] = set()
        self.ended = False

    @property
    def stopped(self) -> str:
        """Return why the task takes no further calls, empty if it does."""
        return self._guard.stopped(self.id)

    def is_of(self, thread_id: str) -> bool:
        """Return True if the task is of the thread."""
        return safe_id(thread_id) == self.thread_id

    async def __aenter__(self) -> Self:
        """Make it the current task of this context."""
        entered.set((*(one for one in entered.get() if not one.ended), self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        entered.set(tuple(one for one in entered.get() if one is not self))
        await self.end()

    async def end(self) -> None:
        """End the task once its calls have ended; RiskGate then forgets it, or keeps it for keep_seconds.

        Waits for calls that run. If the host still runs a permitted call, the task ends with that.
        """
        self._closing = True
        while self._entering:
            await self._idle.wait()
        if not self._running:
            await uncancelled(self._end())

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        tool_call_id: str,
        execute: Execute,
        run_id: str = "",
        approval_id: str = "",
        show: Show | None = None,
    ) -> Outcome:
        """Run a proposed call if RiskGate permits it, with the bound arguments, at most once per tool_call_id.

        arguments is a mapping, or the JSON text as the model wrote it. run_id is that of the task unless given; it must
        be the same when a call is made again, after an approval or a restart. show translates the result into what the
        model sees of it, if that is neither text nor JSON as it is.

        An exception of execute is reported, shown and raised again. Raise nothing else but CancelledError.
        """
        given = {"tool_call_id": tool_call_id, "execute": execute, "run_id": run_id, "show": show}
        with self._in_call():
            permitted = await self.permit(
                tool, arguments, tool_call_id=tool_call_id, run_id=run_id, approval_id=approval_id
            )
            if isinstance(permitted, Waits):
                self._waiting[permitted.approval_id] = ((tool, arguments), given)
            if not isinstance(permitted, Permitted):
                return permitted
            return await self._run(permitted, execute, show)

    async def decided(self, waits: Waits | str) -> Outcome:
        """Make a call again that waited, after a person answered; it waits on if nobody did.

        Raise GuardError if the call did not wait here: then make it again with ``call(…, approval_id=…)``.
        """
        approval_id = waits if isinstance(waits, str) else waits.approval_id
        if approval_id not in self._waiting:
            raise GuardError(f"no call of this task waits for '{approval_id}' here; use call(…, approval_id=…)")
        (tool, arguments), given = self._waiting.pop(approval_id)
        return await self.call(tool, arguments, approval_id=approval_id, **given)

    async def permit(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        tool_call_id: str,
        run_id: str = "",
        approval_id: str = "",
    ) -> Permitted | Blocked | Waits:
        """Return the permission to run a proposed call, for a host that runs the tool itself; see ``call``.

        The call counts as run from here on: tell Permitted.ended what came of it.
        """
        with self._in_call():
            try:
                text = arguments_text(arguments)
            except ValueError as error:
                return Blocked("INVALID_ARGUMENTS", f"{tool} was not run: {error}.")
            run_id = safe_id(run_id) if run_id else self.run_id
            call = ToolCall(tool, safe_id(tool_call_id), text)
            execution_id = execution_id_of(run_id, call.tool_call_id)
            for attempt in range(_ATTEMPTS):
                refused = self._refused(tool)
                if refused is not None:
                    return refused
                asking = self._ask(call, run_id, execution_id, approval_id)
                (call, answer), cancelled = await finished(asking)  # it may redeem the call
                refused = self._refused(tool)  # another call may have stopped the task meanwhile
                if cancelled is not None or refused is not None:
                    if isinstance(answer, Permitted):
                        await finished(answer.ended(error=_not_started()))
                    if cancelled is not None:
                        raise cancelled
                    assert refused is not None
                    return refused
                if isinstance(answer, Blocked) and answer.code == "PERMIT_EXPIRED" and attempt + 1 < _ATTEMPTS:
                    continue  # the same call was evaluated elsewhere, or this process was held up
                return answer
            raise AssertionError("unreachable")

    async def asks(
        self, tool: str, arguments: Mapping[str, Any] | str, *, tool_call_id: str, run_id: str = ""
    ) -> Waits | None:
        """Return what a call waits for, None if no person has to answer it; the call is not permitted by that.

        For hosts that must know before they make a call whether it will wait. Raise PhylacteryError.
        """
        with self._in_call():
            try:
                call = ToolCall(tool, safe_id(tool_call_id), arguments_text(arguments))
            except ValueError:
                return None
            if self._refused(tool) is not None:
                return None
            # without an execution id nothing is redeemed
            call, decided = await self._decide(call, safe_id(run_id) if run_id else self.run_id, "", "")
            outcome = None if decided.decision == "ALLOW" else self._not_allowed(call, decided)
            return outcome if isinstance(outcome, Waits) else None

    def rejoin(
        self, tool: str, arguments_json: str, *, tool_call_id: str, run_id: str = "", execution_id: str = ""
    ) -> Permitted:
        """Return a call that was permitted before, perhaps in another process, to tell it the end.

        The values are those of that Permitted; the execution_id is derived from the others unless given.
        """
        run_id = safe_id(run_id) if run_id else self.run_id
        tool_call_id = safe_id(tool_call_id)
        self._running += 1
        execution_id = execution_id or execution_id_of(run_id, tool_call_id)
        return Permitted(self, tool, arguments_json, execution_id, tool_call_id, run_id)

    async def settle(self, permitted: Permitted, result: Any, error: BaseException | str | None) -> str:
        """Report and show what came of a call; return why the task stopped, empty if it goes on. For Permitted."""
        report: dict[str, Any] = {"outcome": "SUCCEEDED"}
        why = ""
        if error is not None:
            had_no_effect = isinstance(error, (ToolFailedError, *self._guard.failures))
            report = {"outcome": "FAILED" if had_no_effect else "IN_DOUBT", "error_code": _code_of(error)}
            result = str(error)
        try:
            fields = shown(result)
        except NotShowable as reason:
            fields, why = {}, f"the result of {permitted.tool} cannot be shown to RiskGate: {reason}"
        text = next(iter(fields.values()), None)
        if error is None:
            report |= result_facts(text)
        gate = self._guard.gate

        async def observe() -> None:
            if not self.id or why:
                return
            await self._guard.lasting(
                lambda: gate.observe(
                    self.id,
                    tool_call_id=permitted.tool_call_id,
                    tool=permitted.tool,
                    run_id=permitted.run_id,
                    arguments_json=permitted.arguments_json,
                    failed=error is not None,
                    result_json=fields.get("result_json"),
                    result_text=fields.get("result_text"),
                )
            )

        # neither waits for the other, and one commit of RiskGate may hold both
        ends = await asyncio.gather(
            self._guard.lasting(lambda: gate.report_outcome(permitted.execution_id, **report)),
            observe(),
            return_exceptions=True,
        )
        for failure in ends:
            if isinstance(failure, PhylacteryError):
                name = failure.reason or failure.code.name
                why = why or f"RiskGate could not be shown the result of {permitted.tool} ({name})"
            elif isinstance(failure, BaseException):
                raise failure
        if why:
            self._guard.stop(self.id, why)
        return self.stopped

    async def release(self) -> None:
        """Count a permitted call as ended. For Permitted."""
        self._running -= 1
        if self._closing and not self._running and not self._entering:
            await uncancelled(self._end())

    async def _ask(
        self, call: ToolCall, run_id: str, execution_id: str, approval_id: str
    ) -> tuple[ToolCall, Permitted | Blocked | Waits]:
        """Return what RiskGate answers to a call, redeemed if it is allowed, and the call the answer is about."""
        try:
            await self._guard.prepare_keys()
            call, decided = await self._decide(call, run_id, execution_id, approval_id)
            redeemed = decided.redemption
            if redeemed is None:
                if decided.decision != "ALLOW" or not decided.permit:
                    return call, self._not_allowed(call, decided)
                refused = self._refused(call.tool)
                if refused is not None:
                    return call, refused
                redeemed = await self._guard.gate.redeem(
                    decided.permit, call, execution_id=execution_id, thread_id=self.thread_id, run_id=run_id
                )
        except PhylacteryError as error:
            return call, _already(call.tool) if error.reason == "ALREADY_REDEEMED" else _failed(call.tool, error)
        return call, await self._verified(call, redeemed, run_id, execution_id)

    async def _decide(
        self, call: ToolCall, run_id: str, execution_id: str, approval_id: str
    ) -> tuple[ToolCall, Evaluation]:
        """Return the decision and the call it is about; a call that is allowed at once is redeemed in the same step.

        A call whose arguments were edited after it was evaluated is another call, with an id of its own; the execution
        id stays, so that only one of them can run.
        """

        async def evaluate(asked: ToolCall, approval: str = "") -> Evaluation:
            return await self._guard.gate.evaluate(
                asked,
                thread_id=self.thread_id,
                run_id=run_id,
                task_id=self.id,
                approval_id=approval,
                execution_id="" if approval else execution_id,
            )

        if approval_id:
            try:
                return call, await evaluate(call, approval_id)
            except _NOT_THIS_ONE:
                pass
        try:
            decided = await evaluate(call)
        except AlreadyExistsError as error:
            if error.reason != "CALL_CONFLICT":
                raise
            call = ToolCall(
                call.tool, edited_id(call.tool_call_id, call.tool, call.arguments_json), call.arguments_json
            )
            decided = await evaluate(call)
        approval = decided.approval
        if decided.decision == "AUTH_REQUIRED" and approval is not None and approval.state in {"APPROVED", "REDEEMED"}:
            decided = await evaluate(call, approval.id)
        return call, decided

    def _not_allowed(self, call: ToolCall, decided: Evaluation) -> Blocked | Waits:
        tool, approval, why = call.tool, decided.approval, " ".join(one.message for one in decided.reasons[:3])
        if decided.decision == "AUTH_REQUIRED" and approval is not None:
            if approval.state == "PENDING":
                return _waits(approval, call, decided.reasons)
            state = approval.state.lower()
            told = f"{tool} was not run: its approval is {state}"
            told += f" ({approval.closed_reason})." if approval.closed_reason else "."
            return Blocked(f"APPROVAL_{approval.state}", told, decided.reasons, decided.decision_id, approval.id)
        code = decided.reasons[0].code if decided.reasons else decided.decision
        return Blocked(code, f"{tool} is blocked: {why or code}", decided.reasons, decided.decision_id)

    async def _verified(
        self, call: ToolCall, redeemed: Redemption, run_id: str, execution_id: str
    ) -> Permitted | Blocked:
        """Return the call as it may run, if this is its first redemption and the receipt is RiskGate's."""
        if redeemed.repeated_redeem:
            await self._doubted(execution_id)
            return _already(call.tool)
        bound = redeemed.bound_call
        self._running += 1
        permitted = Permitted(self, call.tool, bound.arguments_json, execution_id, call.tool_call_id, run_id)
        try:
            await self._guard.verify(
                redeemed,
                tool=call.tool,
                execution_id=execution_id,
                thread_id=self.thread_id,
                run_id=run_id,
                tool_call_id=call.tool_call_id,
            )
        except (ReceiptError, PhylacteryError) as error:
            await permitted.ended(error=_not_started())
            told = error.factor if isinstance(error, ReceiptError) else error.code.name
            return Blocked(
                "RECEIPT_INVALID", f"{call.tool} was not run: RiskGate's receipt cannot be verified ({told})."
            )
        return permitted

    async def _doubted(self, execution_id: str) -> None:
        """Report that nobody may know what came of a call that was redeemed before.

        Perhaps only the first answer was lost, perhaps it runs elsewhere: who knows the end replaces the doubt, and
        RiskGate refuses it where it has the end already.
        """
        gate = self._guard.gate
        with suppress(PhylacteryError):
            await self._guard.lasting(
                lambda: gate.report_outcome(execution_id, outcome="IN_DOUBT", error_code="REDEEM_REPEATED")
            )

    async def _run(self, permitted: Permitted, execute: Execute, show: Show | None) -> Ran:
        arguments = permitted.arguments
        try:
            if is_async(execute):
                result = await execute(arguments)
            else:
                result = await self._in_thread(permitted, execute, arguments, show)
        except BaseException as error:
            if permitted._open:  # noqa: SLF001 - one of us
                _, cancelled = await finished(permitted.ended(error=error))
                if cancelled is not None:
                    raise cancelled from error
            raise
        stopped = await permitted.ended(_seen(result, show))
        return Ran(result, permitted.execution_id, arguments, stopped)

    async def _in_thread(
        self, permitted: Permitted, execute: Execute, arguments: dict[str, Any], show: Show | None
    ) -> Any:
        """Run a synchronous tool in a thread; if this is cancelled, the tool runs on and its end is reported then."""
        future = in_thread(execute, arguments)
        try:
            result = await asyncio.shield(future)
        except asyncio.CancelledError:
            if not future.done():
                permitted._open = False  # noqa: SLF001 - one of us
                await finished(self.settle_doubt(permitted))
                task = asyncio.create_task(self._end_later(permitted, future, show))
                self._later.add(task)
                task.add_done_callback(self._later.discard)
            raise
        return await result if isinstance(result, Awaitable) else result

    async def settle_doubt(self, permitted: Permitted) -> None:
        """Report that nobody waits for a running tool any more."""
        gate = self._guard.gate
        try:
            await self._guard.lasting(
                lambda: gate.report_outcome(permitted.execution_id, outcome="IN_DOUBT", error_code="CANCELLED")
            )
        except PhylacteryError as error:
            self._guard.stop(self.id, f"the outcome of {permitted.tool} could not be reported ({error.code.name})")

    async def _end_later(self, permitted: Permitted, future: asyncio.Future[Any], show: Show | None) -> None:
        try:
            try:
                result = await future
            except Exception as error:  # noqa: BLE001 - whatever the tool raised is its end
                await self.settle(permitted, None, error)
            else:
                await self.settle(permitted, _seen(result, show), None)
        finally:
            await self.release()

    def _refused(self, tool: str) -> Blocked | None:
        if self.ended or self._closing:
            return Blocked("TASK_ENDED", f"{tool} was not run: the request it belongs to has ended.")
        if self.stopped:
            return Blocked("TASK_STOPPED", f"{tool} was not run: {self.stopped}. Begin a new request.")
        return None

    @contextmanager
    def _in_call(self) -> Iterator[None]:
        self._entering += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._entering -= 1
            if not self._entering:
                self._idle.set()

    async def _end(self) -> None:
        if self.ended:
            return
        self.ended = True
        if not self.id:
            return
        try:
            await self._guard.gate.end_task(self.id, keep_seconds=self._keep_seconds)
        except PhylacteryError as error:
            _log.warning("a task was not ended (%s); it expires", error.code.name)
        self._guard.forget(self.id)


entered: ContextVar[tuple[GuardedTask, ...]] = ContextVar("phylactery_guarded_tasks", default=())
"""The tasks whose blocks this context is in."""


def _seen(result: Any, show: Show | None) -> Any:
    """Return what a model will see of a result, something that cannot be shown if that cannot be told."""
    try:
        return result if show is None else show(result)
    except Exception:  # noqa: BLE001 - the tool has run, whatever fails here
        return NotShowable()


def _not_started() -> ToolFailedError:
    return ToolFailedError("it was not started", error_code="NOT_STARTED")


def _already(tool: str) -> Blocked:
    return Blocked("ALREADY_RUN", f"{tool} was not run: this call may have run before, and it does not run twice.")


def _failed(tool: str, error: PhylacteryError) -> Blocked:
    name = error.reason or error.code.name
    if isinstance(error, _AWAY):
        return Blocked("GATE_UNAVAILABLE", f"{tool} was not run: RiskGate is unavailable ({name}).")
    reason = Reason(name, error.message, "", "", "")
    code = error.reason or "GATE_REFUSED"
    return Blocked(code, f"{tool} was not run: {error.message or name}.", (reason,))


def _waits(approval: Approval, call: ToolCall, reasons: tuple[Reason, ...]) -> Waits:
    arguments = tuple(ApprovalArgument(one.path, one.display, one.control) for one in approval.arguments)
    described = ", ".join(f"{one.path.lstrip('/')}: {one.display}" for one in arguments)
    return Waits(
        approval_id=approval.id,
        args_hash=approval.args_hash,
        tool=approval.tool,
        tool_call_id=call.tool_call_id,
        approval_class=approval.approval_class,
        question=f"May {approval.tool} run with {described}?" if described else f"May {approval.tool} run?",
        arguments=arguments,
        expire_time=approval.expire_time,
        thread_id=approval.thread_id,
        reasons=reasons,
        code=approval.code,
    )


def _code_of(error: BaseException | str) -> str:
    if isinstance(error, ToolFailedError):
        return error.error_code
    if isinstance(error, asyncio.CancelledError):
        return "CANCELLED"
    return "TIMEOUT" if isinstance(error, TimeoutError) else "TOOL_FAILED"

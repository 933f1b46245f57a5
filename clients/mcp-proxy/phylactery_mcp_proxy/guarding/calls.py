"""One call under RiskGate, and the ids under which it is made again once a person has answered.

A client that calls a tool again with the same arguments makes the call again that waits, with its approval. Which call
waits is known by an HMAC of caller, tool and arguments in the call's id; it survives a restart, because RiskGate's list
of approvals is asked once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from phylactery_client import PhylacteryError
from phylactery_client.guard import (
    Blocked,
    Guard,
    GuardedTask,
    NotStarted,
    Ran,
    ToolFailedError,
    Waits,
    execution_id_of,
)

from phylactery_mcp_proxy.guarding.results import Shown, error_result, shown
from phylactery_mcp_proxy.guarding.tools import PinnedTool, PinnedTools
from phylactery_mcp_proxy.state.journal import ReportingClient
from phylactery_mcp_proxy.state.pins import canonical
from phylactery_mcp_proxy.upstream.session import NotRunError, OutcomeUnknownError, Upstream

MAX_CONCURRENT: Final = 16
MAX_QUEUED: Final = 100
_MAX_WAITING: Final = 1_000
_SETTLE_SECONDS: Final = 10.0
_STATES: Final = ("PENDING", "APPROVED")


class CallRefusedError(Exception):
    """Error for a call that the proxy itself does not make; the message says why."""


@dataclass(frozen=True, slots=True)
class CallIds:
    """The ids under which RiskGate knows a call: the same for every attempt of it."""

    run_id: str
    tool_call_id: str


@dataclass(frozen=True, slots=True)
class NamedTask:
    """A task that the client's host began at RiskGate with its user's words, and names in the call's _meta."""

    task_id: str
    thread_id: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call as a client proposes it. ``ids`` are those of the attempt before, if the client names it."""

    tool: PinnedTool
    arguments: Mapping[str, Any] = field(repr=False)
    progress: ProgressFnT = field(repr=False)
    ids: CallIds | None = None
    task: NamedTask | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that waits for a person: what is asked, and the ids to make it again."""

    waits: Waits
    ids: CallIds
    key: str


@dataclass(slots=True)
class _Turn:
    """The order of equal calls, and how many have or wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class _ResultError(Exception):
    """A tool's own error, whose effect nobody knows."""

    def __init__(self, seen: Shown) -> None:
        super().__init__(seen.text)
        self.seen = seen


class _ReadError(ToolFailedError):
    """The error of a tool that was reviewed as one that changes nothing."""

    def __init__(self, seen: Shown) -> None:
        super().__init__(seen.text)
        self.seen = seen


class Caller:
    """One principal's calls: their identity at RiskGate, and their calls that wait."""

    def __init__(
        self,
        gate: ReportingClient,
        *,
        subject: str,
        thread_id: str,
        key: bytes,
        tools: PinnedTools,
        upstream: Upstream,
        limit: int,
    ) -> None:
        """Take a client that acts for the subject, which is empty for the proxy's own identity."""
        self.subject, self.thread_id = subject, thread_id
        self._gate, self._key = gate, key
        self._tools, self._upstream, self._limit = tools, upstream, limit
        self._guard = Guard(gate, subject=subject, settle_seconds=_SETTLE_SECONDS)
        self._run_id = f"mcp-{secrets.token_hex(16)}"
        self._waiting: dict[str, CallIds] = {}
        self._turns: dict[str, _Turn] = {}
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._queued = 0
        self._remembered = False

    async def call(self, proposal: Proposal) -> types.CallToolResult | Asked:
        """Make a call if RiskGate permits it, once, and return what it shows, or what a person is asked.

        Raises:
            CallRefusedError: Too many calls wait for their turn, or the arguments are no JSON.
        """
        key = self.key_of(proposal.tool.name, proposal.arguments, proposal.task)
        async with self._turn(key):
            ids = proposal.ids or await self._ids(key)
            return await self._made(proposal, key, ids)

    def key_of(self, tool: str, arguments: Mapping[str, Any], task: NamedTask | None) -> str:
        """Return what identifies a call of this caller: an HMAC, because the id is in the audit log for ever.

        Raises:
            CallRefusedError: The arguments are no JSON.
        """
        where = [task.task_id, task.thread_id] if task else [self.thread_id]
        try:
            said = canonical([self.subject, where, tool, dict(arguments)])
        except (ValueError, RecursionError):
            raise CallRefusedError("the arguments have a number that is not finite, or are nested too deep.") from None
        return hmac.new(self._key, said, hashlib.sha256).hexdigest()[:48]

    async def approve(self, waits: Waits) -> str:
        """Answer yes for the caller, and return why that did not succeed, empty if it did."""
        try:
            await self._gate.approve(
                waits.approval_id, args_hash=waits.args_hash, code=waits.code, thread_id=waits.thread_id
            )
        except PhylacteryError as error:
            return error.reason or error.code.name
        return ""

    async def reject(self, approval_id: str, task: NamedTask | None) -> None:
        """Answer no for the caller; an approval that is closed already stays as it is."""
        with contextlib.suppress(PhylacteryError):
            await self._gate.reject(approval_id, thread_id=task.thread_id if task else self.thread_id)

    async def _made(self, proposal: Proposal, key: str, ids: CallIds) -> types.CallToolResult | Asked:
        task = self._task(proposal.task)
        execution_id = execution_id_of(ids.run_id, ids.tool_call_id)

        async def execute(arguments: dict[str, Any]) -> Shown:
            return await self._executed(proposal, arguments, execution_id)

        try:
            outcome = await task.call(
                proposal.tool.name,
                proposal.arguments,
                tool_call_id=ids.tool_call_id,
                run_id=ids.run_id,
                execute=execute,
                show=_seen,
            )
        except (_ResultError, _ReadError) as error:
            self._waiting.pop(key, None)
            return self._unless_stopped(error.seen.result, task.stopped)
        except NotStarted as error:
            self._waiting.pop(key, None)
            return error_result(f"{proposal.tool.name} was not run: {error}.")
        except OutcomeUnknownError as error:
            self._waiting.pop(key, None)
            return error_result(
                f"Nobody knows whether {proposal.tool.name} ran: {error}. It is recorded as in doubt ({execution_id}); "
                "find out before you repeat it."
            )
        match outcome:
            case Ran(result=seen, stopped=stopped):
                self._waiting.pop(key, None)
                return self._unless_stopped(seen.result, stopped)
            case Waits():
                self._wait(key, ids)
                return Asked(outcome, ids, key)
            case Blocked():
                if outcome.code != "GATE_UNAVAILABLE":
                    self._waiting.pop(key, None)
                places = ", ".join(dict.fromkeys(one.path for one in outcome.reasons if one.path))
                return error_result(f"{outcome.message} ({places})" if places else outcome.message)

    async def _executed(self, proposal: Proposal, arguments: dict[str, Any], execution_id: str) -> Shown:
        settled = await self._upstream.settled()
        # last, because a person may have taken minutes; what is pinned may have changed meanwhile
        if not settled or self._tools.find(proposal.tool.name) != proposal.tool:
            raise NotStarted("its definition is no longer the one that was reviewed, or cannot be looked at")
        try:
            result = await self._upstream.call(proposal.tool.own_name, arguments, execution_id, proposal.progress)
        except NotRunError as error:
            raise NotStarted(str(error)) from None
        seen = shown(result, self._limit)
        if seen.failed:
            raise _ReadError(seen) if proposal.tool.reads_only else _ResultError(seen)
        return seen

    def _task(self, named: NamedTask | None) -> GuardedTask:
        if named is None:  # one for each call, because a task keeps what waits in it
            return self._guard.without_words(self.thread_id, request_id=self._run_id)
        return self._guard.existing(named.task_id, thread_id=named.thread_id, request_id=named.task_id)

    @staticmethod
    def _unless_stopped(result: types.CallToolResult, stopped: str) -> types.CallToolResult:
        """Return a result, unless RiskGate could not be shown it: then no model sees it either."""
        return error_result(f"The call ran, and its result is not shown: {stopped}.") if stopped else result

    async def _ids(self, key: str) -> CallIds:
        if not self._remembered:
            await self._remember()
        return self._waiting.get(key) or CallIds(self._run_id, f"{key}.{secrets.token_hex(12)}")

    async def _remember(self) -> None:
        """Take over the calls that wait since before this process began. RiskGate away blocks the call anyway."""
        with contextlib.suppress(PhylacteryError):
            for state in _STATES:
                token = ""
                for _ in range(_MAX_WAITING):
                    page = await self._gate.list_approvals(
                        state=state, thread_id=self.thread_id, page_size=200, page_token=token
                    )
                    for one in page.approvals:
                        self._wait(one.tool_call_id.partition(".")[0], CallIds(one.run_id, one.tool_call_id))
                    token = page.next_page_token
                    if not token:
                        break
            self._remembered = True

    def _wait(self, key: str, ids: CallIds) -> None:
        self._waiting[key] = ids
        if len(self._waiting) > _MAX_WAITING:
            self._waiting.pop(next(iter(self._waiting)))

    @contextlib.asynccontextmanager
    async def _turn(self, key: str) -> AsyncIterator[None]:
        """Hold one of the places, and the call itself: the same call at the same time is made one after another."""
        if self._queued >= MAX_QUEUED:
            raise CallRefusedError(f"{MAX_QUEUED} calls wait for their turn already; try again later.")
        turn = self._turns.setdefault(key, _Turn())
        self._queued += 1
        turn.users += 1
        try:
            async with turn.lock, self._slots:
                yield
        finally:
            self._queued -= 1
            turn.users -= 1
            if not turn.users:
                self._turns.pop(key, None)


def _seen(result: Shown) -> Any:
    """Return what a model sees of a result: the JSON value, or text."""
    return result.text if result.json is None else result.result.structured_content

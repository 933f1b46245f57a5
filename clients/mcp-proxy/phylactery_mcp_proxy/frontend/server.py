"""The MCP server that clients see: the pinned tools, and every call of one under RiskGate.

Both eras of the protocol. A client of 2026-07-28 is asked through an InputRequiredResult, whose requestState is sealed
and bound to principal, time and request; a client of 2025 through elicitation. What is neither a tool nor its call is
refused: resources, prompts and completions would be a way around RiskGate.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from phylactery_client.guard import Waits

from phylactery_mcp_proxy.guarding.calls import Asked, Caller, CallIds, CallRefusedError, NamedTask, Proposal
from phylactery_mcp_proxy.guarding.questions import (
    SELF,
    form,
    how_to_answer,
    is_no,
    is_yes,
    takes_forms,
    text,
    where_to_answer,
)
from phylactery_mcp_proxy.guarding.results import error_result
from phylactery_mcp_proxy.guarding.tools import PinnedTools
from phylactery_mcp_proxy.upstream.session import Upstream

TASK_ID: Final = "phylactery/task-id"
THREAD_ID: Final = "phylactery/thread-id"
"""Fields of a call's _meta by which a host names the task that it began at RiskGate with its user's words."""
_APPROVAL: Final = "approval"
_STATE_SECONDS: Final = 600.0
_MAX_PROGRESS: Final = 1_000
_ANSWER_SECONDS: Final = 600.0
_SERVED: Final = frozenset(
    {"initialize", "ping", "server/discover", "tools/list", "tools/call", "notifications/initialized"}
)
_QUIET: Final = "notifications/"

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]


@dataclass(frozen=True, slots=True)
class Behind:
    """What the served tools come from: the pins, the guarded server, and whose calls they are."""

    name: str
    tools: PinnedTools
    upstream: Upstream
    caller_of: CallerOf
    start_seconds: float
    forms: bool


def build(behind: Behind, works: set[asyncio.Task[Any]], *, version: str, state_key: bytes) -> Server[Any]:
    """Return the server for clients. state_key seals requestState, and is the same for all proxies of a folder.

    works holds the calls that run: cancel and await them at the end, so that what became of them is reported.
    """
    handlers = _Handlers(behind, works)
    server = Server(
        f"riskgate-{behind.name}",
        version=version,
        instructions="Every call is decided by RiskGate. A call that is refused says why, and what to do.",
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
    )
    security = RequestStateSecurity(
        keys=[state_key], ttl=_STATE_SECONDS, bind_principal=lambda context: behind.caller_of(context).subject or "self"
    )
    server.middleware = [_refuse_others, RequestStateBoundary(security, default_audience=f"mcp-proxy/{behind.name}")]
    return server


async def _refuse_others(ctx: Context, call_next: CallNext) -> HandlerResult:
    if ctx.method not in _SERVED and not ctx.method.startswith(_QUIET):
        raise MCPError(
            types.METHOD_NOT_FOUND, "RiskGate's proxy passes on tools alone: no resources, prompts or completions"
        )
    return await call_next(ctx)


class _Handlers:
    def __init__(self, behind: Behind, works: set[asyncio.Task[Any]]) -> None:
        self._behind, self._works = behind, works

    async def list_tools(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the pinned tools that are as they were reviewed."""
        await self._behind.upstream.ready(self._behind.start_seconds)
        await self._behind.upstream.settled()
        return types.ListToolsResult(tools=[one.offered() for one in self._behind.tools.usable()])

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Make a call. It goes on in a task of its own, so that a cancelled one is reported before it is forgotten."""
        work = asyncio.create_task(self._call(context, params))
        self._works.add(work)
        work.add_done_callback(self._works.discard)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.cancel()
            raise

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        upstream = self._behind.upstream
        ready = await upstream.ready(self._behind.start_seconds) and await upstream.settled()
        tool = self._behind.tools.find(params.name)
        if isinstance(tool, str):
            return error_result(tool)
        if not ready:  # before RiskGate is asked, so that no approval is used up
            why = upstream.fault or "its changed tools cannot be listed"
            return error_result(f"{tool.name} was not run: the MCP server is away ({why}).")
        caller = self._behind.caller_of(context)
        proposal = Proposal(tool, params.arguments or {}, _progress(context), task=_named_task(params))
        try:
            if params.request_state is not None:
                return await self._resumed(context, params, caller, proposal)
            return await self._asked(context, caller, proposal, await caller.call(proposal))
        except CallRefusedError as error:
            return error_result(f"{tool.name} was not run: {error}")

    async def _resumed(
        self, context: Context, params: types.CallToolRequestParams, caller: Caller, proposal: Proposal
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Make a call again whose state the client echoes. Its ids are in it: a replay is the same execution."""
        state = json.loads(params.request_state or "{}")
        if state["key"] != caller.key_of(proposal.tool.name, proposal.arguments, proposal.task):
            raise CallRefusedError("the requestState is that of another call.")
        again = Proposal(
            proposal.tool,
            proposal.arguments,
            proposal.progress,
            CallIds(state["run_id"], state["tool_call_id"]),
            proposal.task,
        )
        answer = (params.input_responses or {}).get(_APPROVAL)
        if isinstance(answer, types.ElicitResult) and not is_yes(answer):
            return await self._refused(caller, proposal, state["approval_id"], answer)
        outcome = await caller.call(again)
        if (
            isinstance(outcome, Asked)
            and isinstance(answer, types.ElicitResult)
            and self._may_ask(context, outcome)
            and _is_of(outcome.waits, state)  # a yes is to what was shown: another approval is asked for anew
        ):
            return await self._approved(caller, again, outcome)
        return await self._asked(context, caller, again, outcome)

    async def _asked(
        self, context: Context, caller: Caller, proposal: Proposal, outcome: types.CallToolResult | Asked
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Return a result, or ask the client's user where that is permitted, or say where to answer."""
        if not isinstance(outcome, Asked):
            return outcome
        if not self._may_ask(context, outcome):
            return error_result(where_to_answer(outcome.waits))
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            state = {
                "key": outcome.key,
                "run_id": outcome.ids.run_id,
                "tool_call_id": outcome.ids.tool_call_id,
                "approval_id": outcome.waits.approval_id,
                "args_hash": outcome.waits.args_hash,
            }
            return types.InputRequiredResult(
                input_requests={_APPROVAL: form(outcome.waits)}, request_state=json.dumps(state)
            )
        answer = await _elicited(context, outcome.waits)
        if answer is None or not is_yes(answer):
            return await self._refused(caller, proposal, outcome.waits.approval_id, answer)
        again = Proposal(proposal.tool, proposal.arguments, proposal.progress, outcome.ids, proposal.task)
        return await self._approved(caller, again, outcome)

    @staticmethod
    async def _refused(
        caller: Caller, proposal: Proposal, approval_id: str, answer: types.ElicitResult | None
    ) -> types.CallToolResult:
        """Give a no at RiskGate. A form that was only closed answers nothing, and the approval waits on."""
        name = proposal.tool.name
        if answer is not None and is_no(answer):
            await caller.reject(approval_id, proposal.task)
            return error_result(text("declined", tool=name))
        return error_result(f"{text('left', tool=name)} {how_to_answer(approval_id)}")

    @staticmethod
    async def _approved(caller: Caller, proposal: Proposal, asked: Asked) -> types.CallToolResult:
        """Give a yes at RiskGate, and make the call."""
        refused = await caller.approve(asked.waits)
        if refused:
            return error_result(f"{text('unanswerable', why=refused)} {where_to_answer(asked.waits)}")
        outcome = await caller.call(proposal)
        return error_result(where_to_answer(outcome.waits)) if isinstance(outcome, Asked) else outcome

    def _may_ask(self, context: Context, asked: Asked) -> bool:
        waits = asked.waits
        return self._behind.forms and waits.approval_class == SELF and takes_forms(context.session.client_capabilities)


def _is_of(waits: Waits, state: Mapping[str, Any]) -> bool:
    """Return True if the approval is the one that a state was sealed for."""
    return (waits.approval_id, waits.args_hash) == (state.get("approval_id"), state.get("args_hash"))


async def _elicited(context: Context, waits: Waits) -> types.ElicitResult | None:
    """Return the answer of a 2025 client's user, None if there is none."""
    related = None if context.request_id is None else ServerMessageMetadata(related_request_id=context.request_id)
    try:
        return await context.session.send_request(
            form(waits), types.ElicitResult, request_read_timeout_seconds=_ANSWER_SECONDS, metadata=related
        )
    except (MCPError, ValueError, RuntimeError):
        return None


def _progress(context: Context) -> ProgressFnT:
    """Return what passes a server's progress on: numbers alone, and not for ever."""
    left = _MAX_PROGRESS

    async def passed(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001 - its text stays
        nonlocal left
        left -= 1
        if left >= 0:
            with contextlib.suppress(Exception):  # the client is gone, or never asked for it
                await context.session.report_progress(progress, total)

    return passed


def _named_task(params: types.CallToolRequestParams) -> NamedTask | None:
    meta: Mapping[str, Any] = params.meta or {}
    task_id, thread_id = meta.get(TASK_ID), meta.get(THREAD_ID)
    if not isinstance(task_id, str) or not isinstance(thread_id, str) or not task_id or not thread_id:
        return None
    return NamedTask(task_id, thread_id)

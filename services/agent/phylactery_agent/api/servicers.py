"""gRPC servicers: decode the request, call the edge, encode the response."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from grpc import aio
from phylactery.agent.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    graph_pb2,
    graph_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
    run_pb2,
    run_pb2_grpc,
    tool_pb2,
    tool_pb2_grpc,
)
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_agent.api import encoding
from phylactery_agent.api.chat import ChatEdge
from phylactery_agent.api.encoding import tools_message
from phylactery_agent.api.graphs import GraphEdge
from phylactery_agent.api.requests import (
    EraseUserRequest,
    ErasureRequest,
    GraphRequest,
    MessageRequest,
    ResolveRequest,
    RetryRequest,
    RunRequest,
    RunsRequest,
    StepsRequest,
    ThreadRequest,
    ThreadsRequest,
    ToolCallsRequest,
    ToolsRequest,
    TranscriptRequest,
    WatchRequest,
)
from phylactery_agent.api.runs import RunEdge
from phylactery_agent.api.threads import ThreadEdge
from phylactery_agent.api.tools import ToolEdge
from phylactery_agent.api.views import ShownRun
from phylactery_agent.runtime.privacy.erase_user import Privacy

Context = aio.ServicerContext[Any, Any]


class ChatServicer(chat_pb2_grpc.ChatServiceServicer):
    """phylactery.agent.v1.ChatService."""

    def __init__(self, edge: ChatEdge, threads: ThreadEdge) -> None:
        self._edge, self._threads = edge, threads

    async def SendMessage(
        self, request: chat_pb2.SendMessageRequest, _context: Context
    ) -> chat_pb2.SendMessageResponse:
        """Accept a message and return its turn."""
        return encoding.answer_message(await self._edge.send(current_principal(), _message(request)))

    async def StreamMessage(
        self, request: chat_pb2.StreamMessageRequest, _context: Context
    ) -> AsyncIterator[chat_pb2.StreamMessageResponse]:
        """Accept a message and stream its turn's events."""
        async with aclosing(self._edge.stream(current_principal(), _message(request))) as events:
            async for shown in events:
                yield chat_pb2.StreamMessageResponse(event=encoding.event_message(shown))

    async def GetThread(self, request: chat_pb2.GetThreadRequest, _context: Context) -> chat_pb2.GetThreadResponse:
        """Return a thread's state."""
        asked = parse(ThreadRequest, {"thread_id": request.thread_id})
        shown = await self._threads.get(current_principal(), asked.thread_id)
        return chat_pb2.GetThreadResponse(thread=encoding.thread_message(shown))

    async def ListThreads(
        self, request: chat_pb2.ListThreadsRequest, _context: Context
    ) -> chat_pb2.ListThreadsResponse:
        """Return a page of threads."""
        asked = parse(ThreadsRequest, {"page_size": request.page_size, "page_token": request.page_token})
        page = await self._threads.list(current_principal(), asked)
        return chat_pb2.ListThreadsResponse(
            threads=[encoding.listed_thread(listed) for listed in page.rows], next_page_token=page.next_page_token
        )

    async def WatchThread(
        self, request: chat_pb2.WatchThreadRequest, _context: Context
    ) -> AsyncIterator[chat_pb2.WatchThreadResponse]:
        """Stream a thread's events."""
        asked = parse(WatchRequest, {"thread_id": request.thread_id, "after_sequence": request.after_sequence})
        async with aclosing(self._threads.watch(current_principal(), asked)) as events:
            async for shown in events:
                yield chat_pb2.WatchThreadResponse(event=encoding.event_message(shown))

    async def DeleteThread(
        self, request: chat_pb2.DeleteThreadRequest, _context: Context
    ) -> chat_pb2.DeleteThreadResponse:
        """Remove a thread."""
        asked = parse(ThreadRequest, {"thread_id": request.thread_id})
        await self._threads.delete(current_principal(), asked.thread_id)
        return chat_pb2.DeleteThreadResponse()

    async def ListMessages(
        self, request: chat_pb2.ListMessagesRequest, _context: Context
    ) -> chat_pb2.ListMessagesResponse:
        """Return a page of the transcript."""
        asked = parse(
            TranscriptRequest,
            {"thread_id": request.thread_id, "page_size": request.page_size, "page_token": request.page_token},
        )
        page = await self._edge.messages(current_principal(), asked)
        return chat_pb2.ListMessagesResponse(
            messages=[encoding.transcript_message(message) for message in page.messages],
            next_page_token=page.next_page_token,
        )


class RunServicer(run_pb2_grpc.RunServiceServicer):
    """phylactery.agent.v1.RunService."""

    def __init__(self, edge: RunEdge) -> None:
        self._edge, self._limits = edge, edge.limits

    async def GetRun(self, request: run_pb2.GetRunRequest, _context: Context) -> run_pb2.GetRunResponse:
        """Return a run."""
        asked = parse(RunRequest, {"run_id": request.run_id})
        return run_pb2.GetRunResponse(run=self._run(await self._edge.get(current_principal(), asked.run_id)))

    async def ListRuns(self, request: run_pb2.ListRunsRequest, _context: Context) -> run_pb2.ListRunsResponse:
        """Return a page of runs."""
        asked = parse(
            RunsRequest,
            {
                "thread_id": request.thread_id,
                "status": encoding.status_word(request.status),
                "page_size": request.page_size,
                "page_token": request.page_token,
            },
        )
        page = await self._edge.list(current_principal(), asked)
        return run_pb2.ListRunsResponse(
            runs=[encoding.listed_run(run, self._limits) for run in page.rows], next_page_token=page.next_page_token
        )

    async def CancelRun(self, request: run_pb2.CancelRunRequest, _context: Context) -> run_pb2.CancelRunResponse:
        """End a run permanently."""
        asked = parse(RunRequest, {"run_id": request.run_id})
        shown = await self._edge.cancel(current_principal(), asked.run_id)
        return run_pb2.CancelRunResponse(run=self._run(shown))

    async def RetryRun(self, request: run_pb2.RetryRunRequest, _context: Context) -> run_pb2.RetryRunResponse:
        """Retry a failed run."""
        asked = parse(
            RetryRequest,
            {
                "run_id": request.run_id,
                "request_id": request.request_id,
                "acknowledge_effects": request.acknowledge_effects,
            },
        )
        retried = await self._edge.retry(current_principal(), asked)
        return run_pb2.RetryRunResponse(
            run=encoding.listed_run(retried.run, self._limits),
            effects=[encoding.tool_call_message(call) for call in retried.effects],
        )

    async def ListRunSteps(
        self, request: run_pb2.ListRunStepsRequest, _context: Context
    ) -> run_pb2.ListRunStepsResponse:
        """Return a page of the nodes a run executed."""
        asked = parse(
            StepsRequest,
            {"run_id": request.run_id, "page_size": request.page_size, "page_token": request.page_token},
        )
        page = await self._edge.steps(current_principal(), asked)
        return run_pb2.ListRunStepsResponse(
            run_steps=[encoding.run_step_message(step) for step in page.rows], next_page_token=page.next_page_token
        )

    async def ListToolCalls(
        self, request: run_pb2.ListToolCallsRequest, _context: Context
    ) -> run_pb2.ListToolCallsResponse:
        """Return a page of the ledger."""
        asked = parse(
            ToolCallsRequest,
            {"state": request.state, "page_size": request.page_size, "page_token": request.page_token},
        )
        page = await self._edge.tool_calls(current_principal(), asked)
        return run_pb2.ListToolCallsResponse(
            tool_calls=[encoding.tool_call_message(call) for call in page.rows], next_page_token=page.next_page_token
        )

    async def ResolveInDoubt(
        self, request: run_pb2.ResolveInDoubtRequest, _context: Context
    ) -> run_pb2.ResolveInDoubtResponse:
        """Settle an effect in doubt."""
        asked = parse(
            ResolveRequest,
            {
                "run_id": request.run_id,
                "tool_call_id": request.tool_call_id,
                "resolution": encoding.resolution_word(request.resolution),
            },
        )
        settled = await self._edge.resolve(current_principal(), asked)
        return run_pb2.ResolveInDoubtResponse(tool_call=encoding.tool_call_message(settled))

    def _run(self, shown: ShownRun) -> run_pb2.Run:
        return encoding.run_message(shown, self._limits)


class ToolServicer(tool_pb2_grpc.ToolServiceServicer):
    """phylactery.agent.v1.ToolService."""

    def __init__(self, edge: ToolEdge) -> None:
        self._edge = edge

    async def ListTools(self, request: tool_pb2.ListToolsRequest, _context: Context) -> tool_pb2.ListToolsResponse:
        """Return the tools and their states."""
        asked = parse(ToolsRequest, {"enabled_only": request.enabled_only, "source": request.source})
        return tools_message(self._edge.list(current_principal(), asked))


class GraphServicer(graph_pb2_grpc.GraphServiceServicer):
    """phylactery.agent.v1.GraphService."""

    def __init__(self, edge: GraphEdge) -> None:
        self._edge = edge

    async def ListGraphs(self, request: graph_pb2.ListGraphsRequest, _context: Context) -> graph_pb2.ListGraphsResponse:
        """Return every graph."""
        found = self._edge.list(current_principal())
        return graph_pb2.ListGraphsResponse(
            graphs=[encoding.graph_message(spec, default=self._edge.default) for spec in found]
        )

    async def GetGraph(self, request: graph_pb2.GetGraphRequest, _context: Context) -> graph_pb2.GetGraphResponse:
        """Return one graph with its nodes."""
        asked = parse(GraphRequest, {"name": request.name})
        return encoding.drawn_graph(self._edge.get(current_principal(), asked.name), default=self._edge.default)


class PrivacyServicer(privacy_pb2_grpc.PrivacyServiceServicer):
    """phylactery.agent.v1.PrivacyService."""

    def __init__(self, privacy: Privacy) -> None:
        self._privacy = privacy

    async def EraseUser(
        self, request: privacy_pb2.EraseUserRequest, _context: Context
    ) -> privacy_pb2.EraseUserResponse:
        """Remove everything stored about a user."""
        asked = parse(EraseUserRequest, {"subject": request.subject, "request_id": request.request_id})
        erasure = await self._privacy.erase(current_principal(), asked.subject, asked.request_id)
        return privacy_pb2.EraseUserResponse(erasure=encoding.erasure_message(erasure))

    async def GetErasure(
        self, request: privacy_pb2.GetErasureRequest, _context: Context
    ) -> privacy_pb2.GetErasureResponse:
        """Return the record of an erasure."""
        asked = parse(ErasureRequest, {"erasure_id": request.erasure_id})
        erasure = await self._privacy.get(current_principal(), asked.erasure_id)
        return privacy_pb2.GetErasureResponse(erasure=encoding.erasure_message(erasure))


def _message(request: chat_pb2.SendMessageRequest | chat_pb2.StreamMessageRequest) -> MessageRequest:
    return parse(
        MessageRequest,
        {
            "request_id": request.request_id,
            "thread_id": request.thread_id,
            "text": request.text,
            "language": request.language,
            "on_busy": encoding.on_busy_word(request.on_busy),
            "graph": request.graph,
            "shown_approvals": tuple(
                {"approval_id": shown.approval_id, "args_hash": shown.args_hash} for shown in request.shown_approvals
            ),
        },
    )

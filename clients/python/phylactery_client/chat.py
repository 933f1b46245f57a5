"""Client of the agent: messages, events, threads, runs, tools and graphs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

import grpc
from phylactery.agent.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    event_pb2,
    graph_pb2,
    graph_pb2_grpc,
    guest_pb2,
    guest_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
    run_pb2,
    run_pb2_grpc,
    tool_pb2,
    tool_pb2_grpc,
)

from phylactery_client.attachments import Attachment, Place, attachment_messages
from phylactery_client.cards import ShownCall
from phylactery_client.channel import EFFECT_TIMEOUT, TURN_TIMEOUT, ServiceClient, new_request_id
from phylactery_client.decode import decode, enum_number
from phylactery_client.errors import DataLossError
from phylactery_client.memory_results import AgentErasure
from phylactery_client.results import (
    ChatPage,
    DrawnGraph,
    Event,
    FetchedFile,
    Graph,
    Lift,
    PendingApproval,
    Thread,
    ThreadPage,
    ToolList,
    Turn,
)
from phylactery_client.run_results import RetriedRun, Run, RunPage, RunStepPage, ToolCallPage, ToolCallRecord
from phylactery_client.transport import closing

MAX_FILE_BYTES: Final = 8 * 1024 * 1024
"""What fetch_file takes unless it is told otherwise."""
_DESCRIBED: Final = tuple(event_pb2.SentFile.DESCRIPTOR.fields_by_name)


class PhylacteryClient(ServiceClient):
    """A client of the agent. Every method raises the PhylacteryError of its code; timeout is in seconds."""

    def __init__(self, target: str, **options: Any) -> None:
        """Options are those of ServiceClient."""
        super().__init__(target, **options)
        self._chat = chat_pb2_grpc.ChatServiceStub(self._channel)
        self._runs = run_pb2_grpc.RunServiceStub(self._channel)
        self._tools = tool_pb2_grpc.ToolServiceStub(self._channel)
        self._graphs = graph_pb2_grpc.GraphServiceStub(self._channel)
        self._guests = guest_pb2_grpc.GuestServiceStub(self._channel)
        self._privacy = privacy_pb2_grpc.PrivacyServiceStub(self._channel)

    async def send_message(
        self,
        text: str,
        *,
        thread_id: str = "",
        language: str = "",
        on_busy: str = "",
        graph: str = "",
        shown: PendingApproval | None = None,
        quoted: bool = False,
        named: Sequence[ShownCall] = (),
        attachments: Sequence[Attachment | Place] = (),
        own_spans: Sequence[tuple[int, int]] | None = None,
        message_starts: Sequence[int] = (),
        sender_phone: str = "",
        wait: bool = True,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Turn:
        """Send a message to a thread (empty opens one) and return the turn.

        The same request_id with the same body returns the same turn again; without one, each call is a new message.
        on_busy is ENQUEUE, REJECT, INTERRUPT or COALESCE, empty for ENQUEUE; graph is empty for the thread's own. shown
        is the approval card the person saw: a text that is nothing but a clear yes or no answers exactly that card, if
        it is the newest and nothing else waits, or if quoted is true: the person quoted it. named are all waiting calls
        that the person has before them, in the order in which they were shown: a text that says which of them it means
        ("yes to the first, no to the second") answers those.
        attachments are files and places sent with the text, which may then be empty. own_spans are the half-open parts
        of the text, in code points, that the person wrote: what they forwarded or quoted is not among them, and is read
        as data. None means all of it, but none of it with acting_for: a channel says what it knows. message_starts are
        the offsets at which a further message begins, where the text is several. sender_phone is the number the person
        writes from, which is taken with acting_for a person of a channel alone. wait=False returns an empty turn as
        soon as the message is stored.
        Raise ValueError for an unknown on_busy.
        """
        request = chat_pb2.SendMessageRequest(
            request_id=request_id or new_request_id(),
            thread_id=thread_id,
            text=text,
            language=language,
            on_busy=_on_busy(on_busy),
            graph=graph,
            shown_approvals=_shown(shown, named, quoted=quoted),
            attachments=attachment_messages(attachments),
            own_spans=_own(own_spans),
            message_starts=message_starts,
            sender_phone=sender_phone,
            no_wait=not wait,
        )
        seconds = self._seconds(timeout, TURN_TIMEOUT) if wait else timeout
        return decode(Turn, await self._call(self._chat.SendMessage, request, seconds))

    async def stream_message(
        self,
        text: str,
        *,
        thread_id: str = "",
        language: str = "",
        on_busy: str = "",
        graph: str = "",
        shown: PendingApproval | None = None,
        quoted: bool = False,
        named: Sequence[ShownCall] = (),
        attachments: Sequence[Attachment | Place] = (),
        own_spans: Sequence[tuple[int, int]] | None = None,
        message_starts: Sequence[int] = (),
        sender_phone: str = "",
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[Event]:
        """Send a message and yield every event of the turn once, as it happens; timeout bounds the whole stream.

        A broken stream is opened again with the same request_id and goes on after the last event, also over a restart
        of the agent. Leaving the iterator early disconnects and stops nothing; use contextlib.aclosing to disconnect
        at once. Raise ValueError for an unknown on_busy.
        """
        request = chat_pb2.StreamMessageRequest(
            request_id=request_id or new_request_id(),
            thread_id=thread_id,
            text=text,
            language=language,
            on_busy=_on_busy(on_busy),
            graph=graph,
            shown_approvals=_shown(shown, named, quoted=quoted),
            attachments=attachment_messages(attachments),
            own_spans=_own(own_spans),
            message_starts=message_starts,
            sender_phone=sender_phone,
        )
        place = 0

        def stream(seconds: float) -> AsyncGenerator[chat_pb2.StreamMessageResponse]:
            return self._stream(self._chat.StreamMessage, request, seconds)

        seconds = self._seconds(timeout, TURN_TIMEOUT)
        async with closing(self._outliving(stream, seconds, lambda: True, endless=False)) as responses:
            async for response in responses:
                if response.event.sequence <= place:
                    continue  # a stream that is opened again begins with the turn's first event
                place = response.event.sequence
                yield event_of(response.event)

    async def answer_approval(
        self,
        approval: PendingApproval,
        *,
        thread_id: str,
        approve: bool,
        language: str = "",
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Turn:
        """Answer exactly the card that the person was shown, with all its calls, and return the turn that goes on.

        It is the person's own answer in the thread, as if typed. A card that has changed or ended, that is not of class
        self, or after which something else was said, is not answered, and the reply says what is pending.
        """
        text = "yes" if approve else "no"
        return await self.send_message(
            text,
            thread_id=thread_id,
            language=language,
            shown=approval,
            own_spans=((0, len(text)),),
            request_id=request_id,
            timeout=timeout,
        )

    async def answer_call(
        self,
        approval_id: str,
        args_hash: str,
        *,
        approve: bool,
        also: Sequence[tuple[str, str]] = (),
        wait: bool = True,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> Turn:
        """Answer one call of a card, by its approval and the hash that was shown, and return the turn that goes on.

        No words are read, and whatever else waits goes on waiting. also are all the other calls of its card, each with
        its hash, if the answer is for the whole card. The same request_id with the same body returns the same turn
        again. wait=False returns an empty turn as soon as the answer is stored.
        Raise NotFoundError APPROVAL_NOT_FOUND; FailedPreconditionError APPROVAL_NOT_PENDING (answered, withdrawn or
        expired), APPROVAL_CHANGED, APPROVAL_OF_ANOTHER (a no withdraws it).
        """
        request = chat_pb2.AnswerApprovalRequest(
            request_id=request_id or new_request_id(),
            approval_id=approval_id,
            args_hash=args_hash,
            approve=approve,
            no_wait=not wait,
            also=[chat_pb2.ShownApproval(approval_id=one, args_hash=shown) for one, shown in also],
        )
        seconds = self._seconds(timeout, TURN_TIMEOUT) if wait else timeout
        return decode(Turn, await self._call(self._chat.AnswerApproval, request, seconds))

    async def read_approval(self, approval_id: str, args_hash: str, *, timeout: float | None = None) -> PendingApproval:
        """Return a call of a card that waits, with its arguments whole where the card leaves out the middle of a value.

        There is no code in it. Raise as answer_call for a call that waits no more, or that has another hash.
        """
        request = chat_pb2.ReadApprovalRequest(approval_id=approval_id, args_hash=args_hash)
        return decode(PendingApproval, (await self._call(self._chat.ReadApproval, request, timeout)).approval)

    async def get_thread(self, thread_id: str, *, timeout: float | None = None) -> Thread:
        """Return a thread's state."""
        request = chat_pb2.GetThreadRequest(thread_id=thread_id)
        return decode(Thread, (await self._call(self._chat.GetThread, request, timeout)).thread)

    async def watch_thread(
        self, thread_id: str, *, after_sequence: int = 0, reconnect: bool = True, timeout: float = math.inf
    ) -> AsyncGenerator[Event]:
        """Yield a thread's events after a sequence number, then each new one, until the caller stops reading.

        If the agent stops or the connection breaks, the stream resumes after the last event once the agent is back.
        With reconnect=False it ends or raises instead; calling again with the sequence of the last received event
        yields exactly the rest. timeout bounds the whole stream; there is none by default. If the requested events are
        no longer kept, raise OutOfRangeError CURSOR_TOO_OLD: get_thread returns where to continue.
        """
        place = after_sequence

        def stream(seconds: float) -> AsyncGenerator[chat_pb2.WatchThreadResponse]:
            request = chat_pb2.WatchThreadRequest(thread_id=thread_id, after_sequence=place)
            return self._stream(self._chat.WatchThread, request, seconds)

        async with closing(self._outliving(stream, timeout, lambda: reconnect)) as responses:
            async for response in responses:
                place = response.event.sequence
                yield event_of(response.event)

    async def fetch_file(
        self, thread_id: str, file_id: str, *, max_bytes: int = MAX_FILE_BYTES, timeout: float | None = None
    ) -> FetchedFile:
        """Return a file that the agent sent in a thread, checked against its size and its hash.

        Raise FailedPreconditionError FILE_CHANGED if it was changed since, DataLossError if it is longer than max_bytes
        or not what its description says: nothing of it is returned then.
        """
        request = chat_pb2.FetchFileRequest(thread_id=thread_id, file_id=file_id)
        described, data = event_pb2.SentFile(), bytearray()
        async with closing(self._stream(self._chat.FetchFile, request, self._seconds(timeout))) as responses:
            async for response in responses:
                if response.HasField("file"):
                    described.CopyFrom(response.file)
                data += response.data
                if max(len(data), described.size_bytes) > max_bytes:
                    raise _damaged(f"the file is longer than {max_bytes} bytes")
        if len(data) != described.size_bytes or hashlib.sha256(data).hexdigest() != described.sha256:
            raise _damaged("the file is not the one that was described")
        values = {name: getattr(described, name) for name in _DESCRIBED}
        return FetchedFile(**values, data=bytes(data))

    async def list_threads(
        self, *, page_size: int = 0, page_token: str = "", timeout: float | None = None
    ) -> ThreadPage:
        """Return a page of the caller's threads, most recently created first; page_size 0 means 20."""
        request = chat_pb2.ListThreadsRequest(page_size=page_size, page_token=page_token)
        return decode(ThreadPage, await self._call(self._chat.ListThreads, request, timeout))

    async def delete_thread(self, thread_id: str, *, timeout: float | None = None) -> None:
        """Delete a thread and all its data; a missing thread is not an error."""
        request = chat_pb2.DeleteThreadRequest(thread_id=thread_id)
        await self._call(self._chat.DeleteThread, request, self._seconds(timeout, EFFECT_TIMEOUT))

    async def list_messages(
        self, thread_id: str, *, page_size: int = 0, page_token: str = "", timeout: float | None = None
    ) -> ChatPage:
        """Return a page of the transcript, newest first; page_size 0 means 50."""
        request = chat_pb2.ListMessagesRequest(thread_id=thread_id, page_size=page_size, page_token=page_token)
        return decode(ChatPage, await self._call(self._chat.ListMessages, request, timeout))

    async def get_run(self, run_id: str, *, timeout: float | None = None) -> Run:
        """Return a run's state and the outcomes of its tool calls."""
        request = run_pb2.GetRunRequest(run_id=run_id)
        return decode(Run, (await self._call(self._runs.GetRun, request, timeout)).run)

    async def list_runs(
        self,
        *,
        thread_id: str = "",
        status: str = "",
        page_size: int = 0,
        page_token: str = "",
        timeout: float | None = None,
    ) -> RunPage:
        """Return a page of the caller's runs, newest first; status is, for example, SUSPENDED, or empty for all.

        Raise ValueError for an unknown status.
        """
        number = enum_number(event_pb2.RunStatus.DESCRIPTOR, status)
        request = run_pb2.ListRunsRequest(
            thread_id=thread_id,
            status=cast("event_pb2.RunStatus.ValueType", number),
            page_size=page_size,
            page_token=page_token,
        )
        return decode(RunPage, await self._call(self._runs.ListRuns, request, timeout))

    async def cancel_run(self, run_id: str, *, timeout: float | None = None) -> Run:
        """Cancel a run permanently and return it once it has ended; a timeout does not undo the cancellation."""
        request = run_pb2.CancelRunRequest(run_id=run_id)
        seconds = self._seconds(timeout, EFFECT_TIMEOUT)
        return decode(Run, (await self._call(self._runs.CancelRun, request, seconds)).run)

    async def retry_run(
        self,
        run_id: str,
        *,
        acknowledge_effects: bool = False,
        request_id: str | None = None,
        timeout: float | None = None,
    ) -> RetriedRun:
        """Retry a failed run as a new run with the same message, and return the new run immediately.

        acknowledge_effects accepts that effects of the old run, certain or possible, may happen a second time.
        """
        request = run_pb2.RetryRunRequest(
            run_id=run_id, request_id=request_id or new_request_id(), acknowledge_effects=acknowledge_effects
        )
        return decode(RetriedRun, await self._call(self._runs.RetryRun, request, timeout))

    async def list_run_steps(
        self, run_id: str, *, page_size: int = 0, page_token: str = "", timeout: float | None = None
    ) -> RunStepPage:
        """Return a page of the nodes a run executed, oldest first; page_size 0 means 100."""
        request = run_pb2.ListRunStepsRequest(run_id=run_id, page_size=page_size, page_token=page_token)
        return decode(RunStepPage, await self._call(self._runs.ListRunSteps, request, timeout))

    async def list_tool_calls(
        self, *, state: str = "", page_size: int = 0, page_token: str = "", timeout: float | None = None
    ) -> ToolCallPage:
        """Return a page of the effects ledger of all runs, newest first; state is e.g. in_doubt, empty for all."""
        request = run_pb2.ListToolCallsRequest(state=state, page_size=page_size, page_token=page_token)
        return decode(ToolCallPage, await self._call(self._runs.ListToolCalls, request, timeout))

    async def resolve_in_doubt(
        self, run_id: str, tool_call_id: str, *, happened: bool, timeout: float | None = None
    ) -> ToolCallRecord:
        """Record the outcome of an effect in doubt and return its ledger row."""
        word = run_pb2.RESOLUTION_HAPPENED if happened else run_pb2.RESOLUTION_DID_NOT_HAPPEN
        request = run_pb2.ResolveInDoubtRequest(run_id=run_id, tool_call_id=tool_call_id, resolution=word)
        return decode(ToolCallRecord, (await self._call(self._runs.ResolveInDoubt, request, timeout)).tool_call)

    async def list_tools(
        self, *, enabled_only: bool = False, source: str = "", timeout: float | None = None
    ) -> ToolList:
        """Return the agent's tools by name, with the reasons of disabled ones; source is as in Tool, empty for all."""
        request = tool_pb2.ListToolsRequest(enabled_only=enabled_only, source=source)
        return decode(ToolList, await self._call(self._tools.ListTools, request, timeout))

    async def list_graphs(self, *, timeout: float | None = None) -> tuple[Graph, ...]:
        """Return the graphs that can serve a thread, the default first."""
        answered = await self._call(self._graphs.ListGraphs, graph_pb2.ListGraphsRequest(), timeout)
        return tuple(decode(Graph, graph) for graph in answered.graphs)

    async def get_graph(self, name: str = "", *, timeout: float | None = None) -> DrawnGraph:
        """Return a graph as a list of nodes and as Mermaid text; an empty name is the default."""
        return decode(
            DrawnGraph, await self._call(self._graphs.GetGraph, graph_pb2.GetGraphRequest(name=name), timeout)
        )

    async def lift(self, subject: str, *, until: datetime | None = None, timeout: float | None = None) -> Lift:
        """Let a person of a channel do what any user may, until a time if one is given. Needs the role operator."""
        request = guest_pb2.LiftRequest(subject=subject)
        if until is not None:
            request.end_time.FromDatetime(until.astimezone(UTC))
        return decode(Lift, (await self._call(self._guests.Lift, request, timeout)).lift)

    async def end_lift(self, subject: str = "", *, timeout: float | None = None) -> None:
        """End the lift of a person; an empty subject is the caller, or whom a delegate acts for."""
        await self._call(self._guests.EndLift, guest_pb2.EndLiftRequest(subject=subject), timeout)

    async def list_lifts(self, *, timeout: float | None = None) -> tuple[Lift, ...]:
        """Return the lifts in force, newest first. Needs the role operator."""
        answered = await self._call(self._guests.ListLifts, guest_pb2.ListLiftsRequest(), timeout)
        return tuple(decode(Lift, lift) for lift in answered.lifts)

    async def erase_user(
        self, *, subject: str = "", request_id: str = "", timeout: float | None = None
    ) -> AgentErasure:
        """Erase the caller at the agent, or a user named by an operator; return the proof."""
        request = privacy_pb2.EraseUserRequest(subject=subject, request_id=request_id or new_request_id())
        return decode(AgentErasure, (await self._call(self._privacy.EraseUser, request, timeout)).erasure)

    async def get_erasure(self, erasure_id: str, *, timeout: float | None = None) -> AgentErasure:
        """Return the record of an erasure."""
        request = privacy_pb2.GetErasureRequest(erasure_id=erasure_id)
        return decode(AgentErasure, (await self._call(self._privacy.GetErasure, request, timeout)).erasure)


def _on_busy(word: str) -> chat_pb2.OnBusy.ValueType:
    return cast("chat_pb2.OnBusy.ValueType", enum_number(chat_pb2.OnBusy.DESCRIPTOR, word))


def event_of(raw: event_pb2.Event) -> Event:
    """Return an event message as a result."""
    create_time = raw.create_time.ToDatetime(tzinfo=UTC) if raw.HasField("create_time") else None
    return Event(raw.thread_id, raw.run_id, raw.sequence, create_time, raw.WhichOneof("kind") or "", raw)


def _own(spans: Sequence[tuple[int, int]] | None) -> list[chat_pb2.OwnSpan]:
    """Return the person's own parts as messages; one that is empty says that there are none."""
    return [chat_pb2.OwnSpan(start=start, stop=stop) for start, stop in (() if spans is None else spans or ((0, 0),))]


def _shown(card: PendingApproval | None, named: Sequence[ShownCall], *, quoted: bool) -> list[chat_pb2.ShownApproval]:
    """Return the shown card, and the calls that may be named beside it, as messages.

    A card without hashes comes from an agent that does not support it.
    """
    shown = {} if card is None else {one.approval_id: one.args_hash for one in (card, *card.also)}
    beside = {one.approval_id: one for one in named} if not quoted else {}
    return [
        chat_pb2.ShownApproval(
            approval_id=approval_id,
            args_hash=args_hash,
            quoted=quoted,
            number=beside[approval_id].number if approval_id in beside else 0,
            earlier=approval_id not in shown,
        )
        for approval_id, args_hash in ({name: one.args_hash for name, one in beside.items()} | shown).items()
        if args_hash
    ]


def _damaged(message: str) -> DataLossError:
    return DataLossError(grpc.StatusCode.DATA_LOSS, message)

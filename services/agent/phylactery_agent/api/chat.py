"""Chat edge: accepts a person's message, records it before anything else, and answers from the record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import InvalidArgument, OutOfRange, Unavailable, Violation
from phylactery_chassis.telemetry import telemetry
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.ids import new_id
from phylactery_understanding.answers import read_answer

from phylactery_agent.api.requests import DEFAULT_PAGE, MessageRequest, TranscriptRequest
from phylactery_agent.api.showing import Showing
from phylactery_agent.api.views import Answer, Said, ShownEvent, ShownRun
from phylactery_agent.ports import MemoryRefusedError, MemoryUnavailableError
from phylactery_agent.ports.services import Services, TranscriptPage
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.intake.redaction import Sanitizing
from phylactery_agent.runtime.runs.queries import ThreadStore
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.events import EventLog
from phylactery_agent.runtime.storage.records import Incoming, Owner, StoredTurn
from phylactery_agent.runtime.storage.sealing import Sealer

_STARTED, _FINISHED = "run_started", "run_finished"


@dataclass(frozen=True, slots=True)
class EdgeTools:
    """The dependencies of the edge."""

    inbox: InboxStore
    runs: RunStore
    threads: ThreadStore
    log: EventLog
    news: ThreadNotifier
    delivery: Delivery
    services: Services
    showing: Showing
    sealer: Sealer
    sanitizing: Sanitizing
    accept: Callable[[Incoming], Awaitable[StoredTurn]]
    """Accepts a message and has it served."""
    wake: Callable[[str], None]
    graphs: Collection[str]
    """The names of all graphs."""
    default_graph: str


class ChatEdge:
    """The implementation of ChatService, without gRPC."""

    def __init__(self, tools: EdgeTools) -> None:
        self._t = tools
        self._accepting: set[asyncio.Task[StoredTurn]] = set()

    async def send(self, principal: Principal, request: MessageRequest) -> Answer:
        """Accept a message and return its turn. Processing continues if the caller disconnects."""
        turn = await self._answered(principal, request)
        run = await self._t.runs.get(turn.owner, turn.run_id)
        then = replace(
            run,
            status=turn.run_status or run.status,
            reason=turn.run_reason,
            approval_id=turn.approval_id,
            updated_us=turn.handled_us,
        )
        return Answer(
            run=ShownRun(then, await self._t.runs.tool_calls(run.run_id) if run.tool_calls else ()),
            reply=Said(turn.reply_id, turn.reply_text, turn.run_id, turn.handled_us),
            pending=await self._t.showing.pending(run) if turn.approval_id == run.approval_id else None,
            last_sequence=turn.last_sequence,
        )

    async def stream(self, principal: Principal, request: MessageRequest) -> AsyncGenerator[ShownEvent]:
        """Accept a message and yield its turn's events from the first to run_finished, as they are committed."""
        turn = await self._accept(principal, request, new_id("tu"))
        sequence, told = 0, False
        with self._t.news.listen(turn.thread_key) as news:
            while True:
                news.clear()
                events = await self._t.log.of_turn(turn.served_as, after=sequence)
                if events and not sequence and events[0].kind != _STARTED:
                    raise await self._gone(turn)
                for event in events:
                    sequence = event.sequence
                    yield await self._t.showing.event(turn.owner, event)
                    if event.kind == _FINISHED:
                        return
                if events:
                    continue
                if told or turn.handled:
                    before, turn = turn, await self._t.inbox.get(turn.turn_id)  # raises if the thread was deleted
                    if (turn.served_as, turn.handled) != (before.served_as, before.handled):
                        continue  # already sent, or another turn's
                    if turn.handled:
                        raise await self._gone(turn)
                await news.wait()
                told = True

    async def messages(self, principal: Principal, request: TranscriptRequest) -> TranscriptPage:
        """Return a page of the transcript. Raise NotFound, InvalidArgument, Unavailable MEMORY_UNAVAILABLE."""
        owner = owner_of(principal)
        await self._t.threads.get(owner, request.thread_id)
        try:
            await self._t.delivery.flush("transcript", owner.thread_key(request.thread_id))
            return await self._t.services.transcript(owner).page(
                request.thread_id, page_size=request.page_size or DEFAULT_PAGE, page_token=request.page_token
            )
        except MemoryUnavailableError:
            raise Unavailable(
                "MEMORY_UNAVAILABLE",
                "the memory service does not answer; try again in a moment",
                metadata={"service": "memory"},
            ) from None
        except MemoryRefusedError as error:
            raise InvalidArgument(
                "INVALID_REQUEST",
                "the memory service does not take this page_token; start again without it",
                violations=[Violation("page_token", error.reason)],
            ) from None

    async def _accept(self, principal: Principal, request: MessageRequest, turn_id: str) -> StoredTurn:
        """Commit the message as this turn and have it served, even if the caller disconnects.

        Return the existing turn if the request was received before.
        """
        task = asyncio.create_task(self._commit(principal, request, turn_id))
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)
        return await asyncio.shield(task)

    async def _commit(self, principal: Principal, request: MessageRequest, turn_id: str) -> StoredTurn:
        owner = owner_of(principal)
        if request.graph and request.graph not in self._t.graphs:
            raise InvalidArgument(
                "INVALID_REQUEST",
                f"there is no graph '{request.graph}'; there are {', '.join(sorted(self._t.graphs))}",
                violations=[Violation("graph", "names no graph of this agent")],
            )
        body_hash = self._t.sealer.body_hash(_body(request))
        # A message that is already stored is answered even if services are unavailable; its text is not accepted again.
        turn = await self._t.inbox.find(owner, request.request_id, body_hash)
        if turn is None:
            return await self._take_in(principal, request, body_hash, turn_id)
        reach("agent.5")
        if not turn.handled:
            self._t.wake(turn.thread_key)
        return turn

    async def _take_in(self, principal: Principal, request: MessageRequest, body_hash: str, turn_id: str) -> StoredTurn:
        owner = owner_of(principal)
        text, also = await self._read(owner, request)
        taken = await self._t.sanitizing.take(owner, text, turn_id=turn_id, also=also)
        return await self._t.accept(
            Incoming(
                owner=owner,
                message_id=request.request_id,
                thread_id=request.thread_id or new_id("th"),
                body_hash=body_hash,
                text=taken.text,
                findings=taken.findings,
                do_not_store=taken.do_not_store,
                allowed_tools=principal.tools,
                language=request.language,
                turn_id=turn_id,
                on_busy=request.on_busy or "enqueue",
                graph=request.graph,
                opens_graph=self._t.default_graph,
                sealed_code=taken.sealed_code,
                sealed_words=taken.sealed_words,
                level=principal.level,
                credential_hash=principal.credential_hash,
                traceparent=telemetry.inject().get("traceparent", ""),
            )
        )

    async def _read(self, owner: Owner, request: MessageRequest) -> tuple[str, Mapping[str, str]]:
        """Return the text to accept, and the codes of the other approvals it answers, by id.

        A clear yes or no to exactly what the caller was shown becomes the strict reply that the graph's router
        recognises. Any other text is returned unchanged, without codes.
        """
        answer = read_answer(request.text) if request.shown_approvals and request.thread_id else "unclear"
        if answer == "unclear":
            return request.text, {}
        shown = {one.approval_id: one.args_hash for one in request.shown_approvals}
        waiting = await self._t.showing.waiting(owner, request.thread_id, shown)
        if not waiting:
            return request.text, {}
        first, *others = waiting
        text = f"APPROVE {first.id} {first.code}" if answer == "yes" else f"REJECT {first.id}"
        return text, {other.id: other.code for other in others}

    async def _gone(self, turn: StoredTurn) -> OutOfRange:
        """Return the error for a turn whose events are no longer stored."""
        thread = await self._t.threads.get(turn.owner, turn.thread_id)
        return too_old(turn.thread_id, thread.first_sequence)

    async def _answered(self, principal: Principal, request: MessageRequest) -> StoredTurn:
        """Accept a message and return its turn once it has ended; the subscription starts before the turn can end."""
        turn_id = new_id("tu")
        with self._t.news.listen(turn_id) as news:
            turn = await self._accept(principal, request, turn_id)
            if turn.turn_id == turn_id:
                await news.wait()
        return await self._ended(turn)

    async def _ended(self, turn: StoredTurn) -> StoredTurn:
        """Wait until the turn has ended, and return it as it was recorded."""
        with self._t.news.listen(turn.turn_id) as news:
            while not turn.handled:
                news.clear()
                turn = await self._t.inbox.get(turn.turn_id)
                if not turn.handled:
                    await news.wait()
        return turn


def _body(request: MessageRequest) -> bytes:
    """Return the content that must match when a request_id is repeated; default values are omitted."""
    body = [request.thread_id, request.text, request.language]
    choices = [request.on_busy or "enqueue", request.graph]
    shown = [[one.approval_id, one.args_hash] for one in request.shown_approvals]
    whole = body if choices == ["enqueue", ""] and not shown else body + choices
    return json.dumps([*whole, *shown]).encode()


def too_old(thread_id: str, first_sequence: int) -> OutOfRange:
    """Return the error for a request for events that are no longer stored."""
    return OutOfRange(
        "CURSOR_TOO_OLD",
        f"the events of thread '{thread_id}' before {first_sequence} are not kept any more; GetThread answers where it "
        f"stands, and its events go on after {first_sequence - 1}",
        metadata={"first_sequence": str(first_sequence)},
    )


def owner_of(principal: Principal) -> Owner:
    """Return the owner whose data a caller may access. Raise PermissionDenied without the role caller."""
    principal.require(Role.CALLER)
    return Owner(principal.tenant, principal.subject)

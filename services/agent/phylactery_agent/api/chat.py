"""ChatService: accepts a person's message, records it before anything else, and answers from the record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc
from phylactery_chassis.auth.identity import Principal, current_principal
from phylactery_chassis.auth.levels import is_of_channel
from phylactery_chassis.errors import InvalidArgument, OutOfRange, Unavailable, Violation
from phylactery_chassis.rpc.validation import (
    EdgeModel,
    Identifier,
    LongIdentifier,
    OptionalIdentifier,
    fields,
    from_message,
    parse,
)
from phylactery_chassis.telemetry import telemetry
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.timestamps import to_timestamp
from phylactery_forms.dialogue.words import answer_to_review
from phylactery_forms.values.contacts import names_own_phone
from phylactery_understanding.language.own_words import MAX_SPANS, refuse_bad_spans, refuse_bad_starts
from phylactery_understanding.replies.stops import read_stop
from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from phylactery_agent.api.files import FetchRequest, FileEdge, part_message
from phylactery_agent.api.mapping import Context, ShownRun, owner_of, run_message, word_of
from phylactery_agent.api.showing import PendingApproval, Showing, ShownEvent, approval_message, event_message
from phylactery_agent.api.threads import (
    ThreadEdge,
    ThreadRequest,
    ThreadsRequest,
    WatchRequest,
    listed_thread,
    thread_message,
    too_old,
)
from phylactery_agent.media.attachments import MAX_ADDRESS, MAX_ATTACHMENTS, MAX_NAME, Attachment, Place
from phylactery_agent.ports import ApprovalInfo, MemoryRefusedError, MemoryUnavailableError
from phylactery_agent.ports.services import Services, TranscriptMessage, TranscriptPage
from phylactery_agent.rules.going_on import split_answer
from phylactery_agent.rules.intents import WHICH, answer_in
from phylactery_agent.runtime.approvals.answers import Answered, ApprovalAnswer, ApprovalAnswers, Chosen, Shown
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.forms.catalog import FormIntake
from phylactery_agent.runtime.intake.attaching import checked, kept, request_key
from phylactery_agent.runtime.intake.authorship import Divided, divided_text
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.intake.redaction import Sanitizing
from phylactery_agent.runtime.runs.queries import ThreadStore
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.events import EventLog
from phylactery_agent.runtime.storage.records import NO_WORDS, Incoming, Owner, StoredTurn
from phylactery_agent.runtime.storage.sealing import Sealer
from phylactery_agent.tools.registry import ToolRegistry

MAX_TEXT = 20_000
DEFAULT_PAGE = 50
_STARTED, _FINISHED = "run_started", "run_finished"
_ANSWER: Final = ".answer"
"""What the request_id of a message gains for the answer that it begins with."""
_LONGEST_NAME: Final = 128


ArgsHash = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class ShownApproval(EdgeModel):
    """An approval as the caller was shown it."""

    approval_id: Identifier
    args_hash: ArgsHash
    quoted: bool = False
    number: Annotated[int, Field(ge=-1)] = 0
    earlier: bool = False


class AnswerRequest(EdgeModel):
    """AnswerApproval."""

    request_id: LongIdentifier
    approval_id: Identifier
    args_hash: ArgsHash
    approve: bool = False
    no_wait: bool = False
    also: Annotated[tuple[ShownApproval, ...], Field(max_length=19)] = ()


class ReadRequest(EdgeModel):
    """ReadApproval."""

    approval_id: Identifier
    args_hash: ArgsHash


class LocationRequest(EdgeModel):
    """A place."""

    latitude: Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
    longitude: Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]
    name: Annotated[str, StringConstraints(max_length=MAX_NAME)]
    address: Annotated[str, StringConstraints(max_length=MAX_ADDRESS)]


class AttachmentRequest(EdgeModel):
    """A file or a place sent with a message; whether its content is what it declares is checked later."""

    kind: Literal["image", "audio", "document", "location", "sticker"]
    mime_type: Annotated[str, StringConstraints(max_length=100)]
    filename: Annotated[str, StringConstraints(max_length=MAX_NAME)]
    data: bytes
    location: LocationRequest | None

    def taken(self) -> Attachment:
        """Return the attachment as the runtime takes it."""
        at = self.location
        place = None if at is None else Place(at.latitude, at.longitude, at.name, at.address)
        return Attachment(self.kind, self.mime_type, self.filename, self.data, place)


class OwnSpan(EdgeModel):
    """A part of the text that the sender wrote, half-open."""

    start: int
    stop: int


class MessageRequest(EdgeModel):
    """SendMessage and StreamMessage; without own_spans the whole text is the sender's, or none for a delegate."""

    request_id: LongIdentifier
    thread_id: OptionalIdentifier
    attachments: Annotated[tuple[AttachmentRequest, ...], Field(max_length=MAX_ATTACHMENTS)] = ()
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT)]
    language: Literal["", "es", "en"]
    on_busy: Literal["", "enqueue", "reject", "interrupt", "coalesce"] = ""
    graph: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{0,64}$")] = ""
    shown_approvals: Annotated[tuple[ShownApproval, ...], Field(max_length=20)] = ()
    own_spans: Annotated[tuple[OwnSpan, ...], Field(max_length=MAX_SPANS)] = ()
    message_starts: Annotated[tuple[int, ...], Field(max_length=MAX_SPANS)] = ()
    no_wait: bool = False
    sender_phone: Annotated[str, StringConstraints(pattern=r"^(\+[1-9][0-9]{6,14})?$")] = Field("", repr=False)

    @property
    def shown_directly(self) -> tuple[ShownApproval, ...]:
        """The approvals that a plain yes or no may be for."""
        return tuple(one for one in self.shown_approvals if not one.earlier)

    @field_validator("shown_approvals")
    @classmethod
    def _all_or_none_quoted(cls, shown: tuple[ShownApproval, ...]) -> tuple[ShownApproval, ...]:
        if len({one.quoted for one in shown}) > 1:
            raise ValueError("quotes some of the approvals and not others: name only those that were quoted")
        return shown

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str, info: ValidationInfo) -> str:
        if not text and not info.data.get("attachments"):
            raise ValueError("text is empty and there are no attachments")
        return text

    @field_validator("own_spans")
    @classmethod
    def _apart_inside(cls, spans: tuple[OwnSpan, ...], info: ValidationInfo) -> tuple[OwnSpan, ...]:
        if "text" in info.data:
            refuse_bad_spans(info.data["text"], [(one.start, one.stop) for one in spans])
        return spans

    @field_validator("message_starts")
    @classmethod
    def _ascending_inside(cls, starts: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        if "text" in info.data:
            refuse_bad_starts(info.data["text"], starts)
        return starts

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the own spans as given."""
        return tuple((one.start, one.stop) for one in self.own_spans)

    def attached(self) -> Sequence[Attachment]:
        """Return the attachments as the runtime takes them."""
        return [one.taken() for one in self.attachments]


class TranscriptRequest(EdgeModel):
    """ListMessages."""

    thread_id: Identifier
    page_size: Annotated[int, Field(ge=0, le=500)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


@dataclass(frozen=True, slots=True)
class Said:
    """The agent's reply."""

    id: str
    text: str
    run_id: str
    created_us: int
    erased: bool = False
    """Whether there was a text that is not kept any more."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a turn."""

    run: ShownRun
    reply: Said
    pending: PendingApproval | None
    last_sequence: int


Commit = Callable[[str], Coroutine[Any, Any, StoredTurn]]
"""Stores what was said as the turn of an id, and returns it or the turn that the same request had before."""


@dataclass(eq=False)
class ChatEdge:
    """The implementation of ChatService, without gRPC."""

    inbox: InboxStore
    runs: RunStore
    threads: ThreadStore
    log: EventLog
    news: ThreadNotifier
    delivery: Delivery
    services: Services
    showing: Showing
    answers: ApprovalAnswers
    sealer: Sealer
    sanitizing: Sanitizing
    forms: FormIntake
    tools: ToolRegistry
    accept: Callable[[Incoming], Awaitable[StoredTurn]]
    """Accepts a message and has it served."""
    wake: Callable[[str], None]
    graphs: Collection[str]
    """The names of all graphs."""
    default_graph: str
    _accepting: set[asyncio.Task[StoredTurn]] = field(default_factory=set, init=False)

    async def send(self, principal: Principal, request: MessageRequest) -> Answer | None:
        """Accept a message and return its turn, None if the caller does not wait for it.

        Processing continues if the caller disconnects.
        """
        return await self._turn_of(partial(self._commit, principal, request), no_wait=request.no_wait)

    async def answer(self, principal: Principal, request: AnswerRequest) -> Answer | None:
        """Accept an answer to an approval and return its turn, None if the caller does not wait for it.

        Raise as ApprovalAnswers.read; processing continues if the caller disconnects.
        """
        return await self._turn_of(partial(self._commit_answer, principal, request), no_wait=request.no_wait)

    async def _turn_of(self, commit: Commit, *, no_wait: bool) -> Answer | None:
        if no_wait:
            await self._accepted(commit, new_id("tu"))
            return None
        return await self._told(await self._answered(commit))

    async def read(self, principal: Principal, request: ReadRequest) -> PendingApproval:
        """Return a pending approval of the caller's with its arguments whole. Raise as ApprovalAnswers.look."""
        owner = owner_of(principal)
        run, info = await self.answers.look(owner, request.approval_id, request.args_hash, full=True)
        return await self.showing.whole(run, info)

    async def _told(self, turn: StoredTurn) -> Answer:
        """Return what a turn that has ended answers."""
        run = await self.runs.get(turn.owner, turn.run_id)
        then = replace(
            run,
            status=turn.run_status or run.status,
            reason=turn.run_reason,
            approval_id=turn.approval_id,
            updated_us=turn.handled_us,
        )
        return Answer(
            run=ShownRun(then, await self.runs.tool_calls(run.run_id) if run.tool_calls else ()),
            reply=Said(turn.reply_id, turn.reply_text, turn.run_id, turn.handled_us, turn.text_erased),
            pending=await self.showing.pending(run) if turn.approval_id == run.approval_id else None,
            last_sequence=turn.last_sequence,
        )

    async def stream(self, principal: Principal, request: MessageRequest) -> AsyncGenerator[ShownEvent]:
        """Accept a message and yield its turn's events from the first to run_finished, as they are committed."""
        turn = await self._accepted(partial(self._commit, principal, request), new_id("tu"))
        sequence, told = 0, False
        with self.news.listen(turn.thread_key) as news:
            while True:
                news.clear()
                events = await self.log.of_turn(turn.served_as, after=sequence)
                if events and not sequence and events[0].kind != _STARTED:
                    raise await self._gone(turn)
                for event in events:
                    sequence = event.sequence
                    yield await self.showing.event(turn.owner, event)
                    if event.kind == _FINISHED:
                        return
                if events:
                    continue
                if told or turn.handled:
                    before, turn = turn, await self.inbox.get(turn.turn_id)  # raises if the thread was deleted
                    if (turn.served_as, turn.handled) != (before.served_as, before.handled):
                        continue  # already sent, or another turn's
                    if turn.handled:
                        raise await self._gone(turn)
                await news.wait()
                told = True

    async def messages(self, principal: Principal, request: TranscriptRequest) -> TranscriptPage:
        """Return a page of the transcript. Raise NotFound, InvalidArgument, Unavailable MEMORY_UNAVAILABLE."""
        owner = owner_of(principal)
        await self.threads.get(owner, request.thread_id)
        try:
            await self.delivery.flush("transcript", owner.thread_key(request.thread_id))
            return await self.services.transcript(owner).page(
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

    async def _accepted(self, commit: Commit, turn_id: str) -> StoredTurn:
        """Commit what was said as this turn and have it served, even if the caller disconnects.

        Return the existing turn if the request was received before.
        """
        task = asyncio.create_task(commit(turn_id))
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)
        return await asyncio.shield(task)

    async def _commit(self, principal: Principal, request: MessageRequest, turn_id: str) -> StoredTurn:
        owner = owner_of(principal)
        if request.graph and request.graph not in self.graphs:
            raise InvalidArgument(
                "INVALID_REQUEST",
                f"there is no graph '{request.graph}'; there are {', '.join(sorted(self.graphs))}",
                violations=[Violation("graph", "names no graph of this agent")],
            )
        body_hash = self.sealer.body_hash(_body(request))
        # A message that is already stored is answered even if services are unavailable; its text is not accepted again.
        turn = await self.inbox.find(owner, request.request_id, body_hash)
        if turn is None:
            rest, whose = divided(request, delegated=principal.through_channel)
            if not whose.others and (chosen := await self._chosen(owner, rest)) is not None:
                return await self._take_chosen(principal, rest, chosen, body_hash, turn_id)
            rest = rest.model_copy(update={"shown_approvals": rest.shown_directly})
            rest = rest if whose.others else await self._rest_after_answer(principal, rest)
            whose = whose if rest.text == whose.text else replace(whose, text=rest.text, starts=())
            return await self._take_in(principal, rest, whose, body_hash, turn_id)
        return self._again(turn)

    async def _commit_answer(self, principal: Principal, request: AnswerRequest, turn_id: str) -> StoredTurn:
        owner = owner_of(principal)
        also = tuple((one.approval_id, one.args_hash) for one in request.also)
        answer = ApprovalAnswer(request.approval_id, request.args_hash, request.approve, also)
        body_hash = self.sealer.body_hash(answer.body)
        # An answer that is already stored is not looked up again: it may have closed its approval itself.
        if (turn := await self.inbox.find(owner, request.request_id, body_hash)) is not None:
            return self._again(turn)
        answered = await self.answers.read(owner, answer)
        return await self._take_answer(principal, request.request_id, answered, body_hash, turn_id)

    async def _take_answer(
        self, principal: Principal, request_id: str, answered: Answered, body_hash: str, turn_id: str
    ) -> StoredTurn:
        """Accept a strict reply as a turn of its own, in the language of the run that asked."""
        owner = owner_of(principal)
        taken = await self.sanitizing.take(owner, answered.reply, turn_id=turn_id, also=answered.codes)
        return await self.accept(
            Incoming(
                owner=owner,
                message_id=request_id,
                thread_id=answered.run.thread_id,
                body_hash=body_hash,
                text=taken.text,
                findings=taken.findings,
                allowed_tools=principal.tools,
                language=answered.run.language,
                turn_id=turn_id,
                sealed_code=taken.sealed_code,
                level=principal.level,
                credential_hash=principal.credential_hash,
                traceparent=telemetry.inject().get("traceparent", ""),
            )
        )

    async def _chosen(self, owner: Owner, request: MessageRequest) -> Chosen | None:
        """Return what a message answers that says which of the shown approvals it means, None if it says no such thing.

        In a form those words may be an answer to it.
        """
        shown, queued = request.shown_approvals, request.on_busy in {"", "enqueue"}
        if not (shown and request.thread_id and queued) or request.attachments or any(one.quoted for one in shown):
            return None
        if answer_in(request.text) != "unclear" or await self.forms.asks(owner.thread_key(request.thread_id)):
            return None
        named = [Shown(one.approval_id, one.args_hash, one.number) for one in shown]
        return await self.answers.chosen(owner, request.thread_id, request.text, named)

    async def _take_chosen(
        self, principal: Principal, request: MessageRequest, chosen: Chosen, body_hash: str, turn_id: str
    ) -> StoredTurn:
        """Accept what a message answers of several runs, each as a turn of its own, and return the last one's.

        A refusal is stored before any yes is. A message that is sent again after a crash finds what was stored.
        """
        owner = owner_of(principal)
        asks = [] if chosen.asks is None else [Answered(chosen.asks, WHICH)]
        *before, last = [*chosen.answered, *asks]
        for one in before:
            name = f"{request.request_id}.{one.reply.split()[1]}"[-_LONGEST_NAME:]
            if await self.inbox.find(owner, name, body_hash) is None:
                await self._take_answer(principal, name, one, body_hash, new_id("tu"))
        return await self._take_answer(principal, request.request_id, last, body_hash, turn_id)

    def _again(self, turn: StoredTurn) -> StoredTurn:
        """Return a turn that was stored before, and have it served if it was not."""
        reach("agent.5")
        if not turn.handled:
            self.wake(turn.thread_key)
        return turn

    async def _rest_after_answer(self, principal: Principal, request: MessageRequest) -> MessageRequest:
        """Accept the answer with which a message begins as a turn of its own, and return what it goes on with (ADR 54).

        Any other message is returned as it is. A message that is sent again goes on from an answer already stored.
        """
        owner, queued = owner_of(principal), request.on_busy in {"", "enqueue"}
        if not (request.shown_approvals and request.thread_id and queued) or request.attachments:
            return request
        split = split_answer(request.text, self.tools)
        name = f"{request.request_id}{_ANSWER}"
        if split is None or len(name) > _LONGEST_NAME:
            return request
        spans = (OwnSpan(start=0, stop=len(split[0])),)
        first = request.model_copy(
            update={"request_id": name, "text": split[0], "own_spans": spans, "message_starts": ()}
        )
        if await self.inbox.find(owner, name, self.sealer.body_hash(_body(first))) is None:
            if not await self._waiting(owner, request):
                return request
            await self._commit(principal, first, new_id("tu"))
        return request.model_copy(update={"text": split[1], "shown_approvals": ()})

    async def _take_in(
        self, principal: Principal, request: MessageRequest, whose: Divided, body_hash: str, turn_id: str
    ) -> StoredTurn:
        owner = owner_of(principal)
        attachments = request.attached()
        await checked(attachments)
        # beside another's words a yes may be about them
        text, also = (request.text, {}) if whose.others else await self._read(owner, request)
        form = self.forms.begun_by(text)
        thread_id = request.thread_id
        hidden = await self.forms.hides(owner.thread_key(thread_id), begun=form)
        taken = await self.sanitizing.take(owner, text or NO_WORDS, turn_id=turn_id, also=also, hidden=hidden)
        others = await self.sanitizing.take_others(owner, whose.others, hidden=hidden)
        attached: tuple[str, ...] = ()
        if attachments:
            key = request_key(owner, request.request_id)
            thread_id = thread_id or f"th_{key}"
            attached = await kept(
                self.services.outputs(owner), attachments, thread_id=thread_id, request=key, private=taken.do_not_store
            )
        return await self.accept(
            Incoming(
                owner=owner,
                message_id=request.request_id,
                thread_id=thread_id or new_id("th"),
                body_hash=body_hash,
                text=taken.text,
                findings=taken.findings,
                do_not_store=taken.do_not_store,
                allowed_tools=principal.tools,
                language=request.language,
                turn_id=turn_id,
                on_busy=request.on_busy or "enqueue",
                graph=request.graph,
                opens_graph=self.default_graph,
                sealed_code=taken.sealed_code,
                sealed_words=taken.sealed_words,
                level=principal.level,
                credential_hash=principal.credential_hash,
                traceparent=telemetry.inject().get("traceparent", ""),
                attachments=attached,
                form=form,
                others=others,
                message_starts=whose.starts if text == request.text else (),
                sender_phone=request.sender_phone if _told_by_channel(principal) and names_own_phone(text) else "",
            )
        )

    async def _read(self, owner: Owner, request: MessageRequest) -> tuple[str, Mapping[str, str]]:
        """Return the text to accept, and the codes of the other approvals it answers, by id.

        A clear yes or no to exactly what the caller was shown becomes the strict reply that the graph's router
        recognises. Any other text is returned unchanged, without codes. In a form words that stop are a no to what was
        shown last, and do not cancel the form beneath it, unless that is its submission: then they cancel the form.
        Words that send are a yes to its submission, and to no other call.
        """
        answer = answer_in(request.text) if request.shown_approvals and request.thread_id else "unclear"
        stops = bool(request.shown_approvals and request.thread_id) and read_stop(request.text) == "stop"
        if stops:
            answer = "no" if await self.forms.asks(owner.thread_key(request.thread_id)) else answer
        sends = answer == "unclear" and answer_to_review(request.text) == "yes"
        if not (request.shown_approvals and request.thread_id) or (answer == "unclear" and not sends):
            return request.text, {}
        waiting = await self._waiting(owner, request)
        if not waiting:
            return request.text, {}
        if (sends or stops) and stops == await self.forms.submits(owner.thread_key(request.thread_id), waiting):
            return request.text, {}
        first, *others = waiting
        text = f"APPROVE {first.id} {first.code}" if sends or answer == "yes" else f"REJECT {first.id}"
        return text, {other.id: other.code for other in others}

    async def _waiting(self, owner: Owner, request: MessageRequest) -> Sequence[ApprovalInfo]:
        """Return the pending approvals that a plain yes or no in a request answers."""
        shown = {one.approval_id: one.args_hash for one in request.shown_approvals}
        quoted = any(one.quoted for one in request.shown_approvals)
        return await self.showing.waiting(owner, request.thread_id, shown, quoted=quoted)

    async def _gone(self, turn: StoredTurn) -> OutOfRange:
        """Return the error for a turn whose events are no longer stored."""
        thread = await self.threads.get(turn.owner, turn.thread_id)
        return too_old(turn.thread_id, thread.first_sequence)

    async def _answered(self, commit: Commit) -> StoredTurn:
        """Accept what was said and return its turn once it has ended; the subscription starts before it can end."""
        turn_id = new_id("tu")
        with self.news.listen(turn_id) as news:
            turn = await self._accepted(commit, turn_id)
            if turn.turn_id == turn_id:
                await news.wait()
        return await self._ended(turn)

    async def _ended(self, turn: StoredTurn) -> StoredTurn:
        """Wait until the turn has ended, and return it as it was recorded."""
        with self.news.listen(turn.turn_id) as news:
            while not turn.handled:
                news.clear()
                turn = await self.inbox.get(turn.turn_id)
                if not turn.handled:
                    await news.wait()
        return turn


def _told_by_channel(principal: Principal) -> bool:
    """Return True if a delegate speaks for a person of a channel, of whom the channel alone knows who they are."""
    return principal.delegated and is_of_channel(principal.subject)


def _body(request: MessageRequest) -> bytes:
    """Return the content that must match when a request_id is repeated; default values are omitted."""
    body = [request.thread_id, request.text, request.language]
    choices = [request.on_busy or "enqueue", request.graph]
    shown = [
        [one.approval_id, one.args_hash, *(["quoted"] * one.quoted), *([one.number] if one.number else ())]
        + ["earlier"] * one.earlier
        for one in request.shown_approvals
    ]
    whole = body if choices == ["enqueue", ""] and not shown else body + choices
    spans = [{"own": [list(one) for one in request.spans]}] if request.spans else []
    starts = [{"starts": list(request.message_starts)}] if request.message_starts else []
    attached = [{"attachment": one.sha256} for one in request.attached()]
    return json.dumps([*whole, *shown, *attached, *spans, *starts]).encode()


def divided(request: MessageRequest, *, delegated: bool) -> tuple[MessageRequest, Divided]:
    """Return a request with its sender's own words as its text, and whose the words it came with are."""
    whose = divided_text(request.text, request.spans, request.message_starts, delegated=delegated)
    return request.model_copy(update={"text": whose.text}), whose


class ChatServicer(chat_pb2_grpc.ChatServiceServicer):
    """phylactery.agent.v1.ChatService."""

    def __init__(self, edge: ChatEdge, threads: ThreadEdge, files: FileEdge) -> None:
        self._edge, self._threads, self._files = edge, threads, files

    async def SendMessage(
        self, request: chat_pb2.SendMessageRequest, _context: Context
    ) -> chat_pb2.SendMessageResponse:
        """Accept a message and return its turn."""
        answer = await self._edge.send(current_principal(), _message(request, no_wait=request.no_wait))
        return chat_pb2.SendMessageResponse() if answer is None else answer_message(answer)

    async def StreamMessage(
        self, request: chat_pb2.StreamMessageRequest, _context: Context
    ) -> AsyncIterator[chat_pb2.StreamMessageResponse]:
        """Accept a message and stream its turn's events."""
        async with aclosing(self._edge.stream(current_principal(), _message(request))) as events:
            async for shown in events:
                yield chat_pb2.StreamMessageResponse(event=event_message(shown))

    async def AnswerApproval(
        self, request: chat_pb2.AnswerApprovalRequest, _context: Context
    ) -> chat_pb2.AnswerApprovalResponse:
        """Accept an answer to an approval and return its turn."""
        also = tuple(fields(ShownApproval, one) for one in request.also)
        answer = await self._edge.answer(current_principal(), from_message(AnswerRequest, request, also=also))
        return chat_pb2.AnswerApprovalResponse() if answer is None else answer_to_approval(answer)

    async def ReadApproval(
        self, request: chat_pb2.ReadApprovalRequest, _context: Context
    ) -> chat_pb2.ReadApprovalResponse:
        """Return a pending approval with its arguments whole."""
        pending = await self._edge.read(current_principal(), from_message(ReadRequest, request))
        return chat_pb2.ReadApprovalResponse(approval=approval_message(pending))

    async def GetThread(self, request: chat_pb2.GetThreadRequest, _context: Context) -> chat_pb2.GetThreadResponse:
        """Return a thread's state."""
        shown = await self._threads.get(current_principal(), from_message(ThreadRequest, request).thread_id)
        return chat_pb2.GetThreadResponse(thread=thread_message(shown))

    async def ListThreads(
        self, request: chat_pb2.ListThreadsRequest, _context: Context
    ) -> chat_pb2.ListThreadsResponse:
        """Return a page of threads."""
        page = await self._threads.list(current_principal(), from_message(ThreadsRequest, request))
        return chat_pb2.ListThreadsResponse(
            threads=[listed_thread(listed) for listed in page.rows], next_page_token=page.next_page_token
        )

    async def WatchThread(
        self, request: chat_pb2.WatchThreadRequest, _context: Context
    ) -> AsyncIterator[chat_pb2.WatchThreadResponse]:
        """Stream a thread's events."""
        async with aclosing(self._threads.watch(current_principal(), from_message(WatchRequest, request))) as events:
            async for shown in events:
                yield chat_pb2.WatchThreadResponse(event=event_message(shown))

    async def DeleteThread(
        self, request: chat_pb2.DeleteThreadRequest, _context: Context
    ) -> chat_pb2.DeleteThreadResponse:
        """Remove a thread."""
        await self._threads.delete(current_principal(), from_message(ThreadRequest, request).thread_id)
        return chat_pb2.DeleteThreadResponse()

    async def ListMessages(
        self, request: chat_pb2.ListMessagesRequest, _context: Context
    ) -> chat_pb2.ListMessagesResponse:
        """Return a page of the transcript."""
        page = await self._edge.messages(current_principal(), from_message(TranscriptRequest, request))
        return chat_pb2.ListMessagesResponse(
            messages=[transcript_message(message) for message in page.messages],
            next_page_token=page.next_page_token,
        )

    async def FetchFile(
        self, request: chat_pb2.FetchFileRequest, _context: Context
    ) -> AsyncIterator[chat_pb2.FetchFileResponse]:
        """Stream a file that was sent."""
        async with aclosing(self._files.fetch(current_principal(), from_message(FetchRequest, request))) as parts:
            async for part in parts:
                yield part_message(part)


def _message(
    request: chat_pb2.SendMessageRequest | chat_pb2.StreamMessageRequest, *, no_wait: bool = False
) -> MessageRequest:
    return parse(
        MessageRequest,
        {
            "request_id": request.request_id,
            "thread_id": request.thread_id,
            "text": request.text,
            "language": request.language,
            "on_busy": word_of(chat_pb2.OnBusy, request.on_busy, "ON_BUSY_"),
            "graph": request.graph,
            "shown_approvals": tuple(fields(ShownApproval, shown) for shown in request.shown_approvals),
            "attachments": tuple(_attachment(attachment) for attachment in request.attachments),
            "own_spans": tuple(fields(OwnSpan, one) for one in request.own_spans),
            "message_starts": tuple(request.message_starts),
            "no_wait": no_wait,
            "sender_phone": request.sender_phone,
        },
    )


def _attachment(attachment: chat_pb2.Attachment) -> dict[str, Any]:
    place = fields(LocationRequest, attachment.location) if attachment.HasField("location") else None
    kind = word_of(chat_pb2.AttachmentKind, attachment.kind, "ATTACHMENT_KIND_")
    return fields(AttachmentRequest, attachment, kind=kind, location=place)


def answer_message(answer: Answer) -> chat_pb2.SendMessageResponse:
    """Return the answer of a turn."""
    response = chat_pb2.SendMessageResponse(
        run=run_message(answer.run),
        reply=chat_pb2.Message(
            id=answer.reply.id,
            role="assistant",
            text=answer.reply.text,
            create_time=to_timestamp(answer.reply.created_us),
            run_id=answer.reply.run_id,
            text_erased=answer.reply.erased,
        ),
        last_sequence=answer.last_sequence,
    )
    if answer.pending is not None:
        response.pending_approval.CopyFrom(approval_message(answer.pending))
    return response


def answer_to_approval(answer: Answer) -> chat_pb2.AnswerApprovalResponse:
    """Return the answer of a turn that answered an approval: the same fields."""
    same = answer_message(answer)
    return chat_pb2.AnswerApprovalResponse(
        run=same.run,
        reply=same.reply,
        pending_approval=same.pending_approval if same.HasField("pending_approval") else None,
        last_sequence=same.last_sequence,
    )


def transcript_message(message: TranscriptMessage) -> chat_pb2.Message:
    """Return one message of the transcript."""
    return chat_pb2.Message(
        id=message.id,
        role=message.role,
        text=message.text,
        create_time=to_timestamp(message.created_us),
        run_id=message.run_id,
        sequence=message.sequence,
    )

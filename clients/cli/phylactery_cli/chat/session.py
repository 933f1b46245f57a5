"""The interactive chat session: live events, approval cards and slash commands."""

from __future__ import annotations

import asyncio
import math
import re
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path

from phylactery_client import Attachment, PhylacteryClient, PhylacteryError, new_request_id
from phylactery_client.cards import ShownCall, ShownMessage
from phylactery_client.errors import DeadlineError, FailedPreconditionError, NotFoundError, UnavailableError
from phylactery_client.results import Event, PendingApproval
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from rich.console import Console

from phylactery_cli.chat.following import Following, cards_of
from phylactery_cli.chat.keys import stop_keys
from phylactery_cli.chat.typed import TypedLines
from phylactery_cli.i18n.texts import Language, Texts
from phylactery_cli.render.render import EventPrinter
from phylactery_cli.render.traces import spans_of, trace_tree
from phylactery_cli.supervisor import Fate, Keeper, Stack
from phylactery_cli.terminal import fate_text, one_line, printable

_ANSWER = re.compile(r"(?P<command>/approve|/reject|/show)(?: +(?:(?P<number>[1-9][0-9]?)|(?P<id>ap_[\w-]{3,64})))?")
_HELP = re.compile(r"/help(?: +(?P<topic>\w+))?")
_SPANS_PAUSE_SECONDS = 0.1
"""The agent's last spans end just after its answer; a short wait includes them."""
_AGAIN_SECONDS = 1.0
_WORK_AFTER_SECONDS, _WORK_EVERY_SECONDS = 0.4, 0.2
_WORK_SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_GONE = frozenset({"APPROVAL_NOT_FOUND", "APPROVAL_NOT_PENDING"})
_STOP_SECONDS = 3.0
"""How long to wait for a stopped run; a later end is shown above the prompt."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Options of a chat."""

    thread_id: str
    language: Language | None = None
    """The answer language chosen by the person; None follows each message."""
    graph: str = ""
    """The graph of a new conversation; empty lets the agent choose."""
    token: str = ""
    data_dir: Path | None = None
    """Where local services write their spans."""
    json: bool = False
    details: bool = False
    """Whether to show each step and decision, not only messages and approvals."""
    stack: Stack | None = None
    attach: tuple[Path, ...] = ()
    """Files sent with the first message."""
    """The services, if the chat manages them."""


@dataclass(frozen=True, slots=True)
class _Message:
    """A message, with the approval card shown when it was entered."""

    text: str
    request_id: str
    shown: PendingApproval | None
    attachments: tuple[Attachment, ...] = ()
    named: Sequence[ShownCall] = ()
    """The calls that were before the person then, on whichever card."""


class Chat:
    """The chat of one person in one thread."""

    def __init__(
        self, client: PhylacteryClient, console: Console, texts: Texts, *, target: str, options: ChatOptions
    ) -> None:
        self._client, self._console, self._texts, self._target = client, console, texts, target
        self._options, self._thread_id = options, options.thread_id
        self._printer = EventPrinter(console, texts, json=options.json, details=options.details)
        self._following = Following(client, self._thread_id, self._printer, tell=self._tell_unfollowed)
        self._session: PromptSession[str] | None = PromptSession() if sys.stdin.isatty() else None
        self._lines = TypedLines(self._session) if self._session is not None else None
        self._errors = console if self._session is not None else Console(stderr=True, highlight=False, markup=False)
        self._keeper = Keeper(options.stack, self._tell_fate) if options.stack is not None else None
        self._failed = self._given_up = self._leaving = False
        self._doing: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._run_id, self._run_known = "", asyncio.Event()
        """The run of the message being answered."""
        self._unsent: deque[_Message] = deque()
        self._attached: list[Attachment] = []
        """Files to be sent with the next message."""
        self._delivering: asyncio.Task[None] | None = None

    async def run(self) -> bool:
        """Run the chat until the person leaves; return False if a service was given up.

        Without a terminal, reading standard input stops at the first failed call. It then returns False, as it does if
        a run ended without an answer.
        """
        for path in self._options.attach:
            self._attach(str(path))
        beside = [asyncio.create_task(self._following.run())]
        if self._keeper is not None:
            beside.append(asyncio.create_task(self._keeper.run()))
        try:
            await self._following.started.wait()
            while (typed := await self._typed(beside)) is not None:
                line = typed.strip()
                if line in ("/quit", "/exit", "/salir"):
                    break
                if line:
                    self._leaving = False
                    await self._attend(line)
                if self._failed and self._session is None:
                    return False
            if self._unsent:
                self._console.print(self._texts("unsent", count=len(self._unsent)), style="yellow", soft_wrap=True)
            return not (self._given_up or (self._session is None and (self._failed or self._printer.failed)))
        finally:
            beside += [task for task in (self._delivering, self._stopping) if task is not None]
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _typed(self, beside: list[asyncio.Task[None]]) -> str | None:
        """Return the next line, from standard input without a terminal; None at its end or when a service stops."""
        if self._session is None:
            line = await asyncio.to_thread(sys.stdin.readline)
            return line.rstrip("\n") if line else None
        if self._lines is not None:
            self._lines.begin()
        self._printer.above_prompt(prompting=True)
        prompt = asyncio.create_task(self._prompt(self._session))
        try:
            await asyncio.wait({prompt, *beside}, return_when=asyncio.FIRST_COMPLETED)
            line = prompt.result() if prompt.done() else None
            return line if line is None or self._lines is None else self._lines.end(line)
        finally:
            self._printer.above_prompt(prompting=False)
            prompt.cancel()
            with suppress(asyncio.CancelledError):
                await prompt

    @property
    def _typed_at(self) -> float:
        """When the line that is attended to was typed; without a terminal there is no card that it could be before."""
        return math.inf if self._lines is None else self._lines.at

    async def _prompt(self, session: PromptSession[str]) -> str | None:
        try:
            return await session.prompt_async(f"\n{self._texts('you')} › ")
        except KeyboardInterrupt:  # clears the typed text; on an empty line, a second one leaves
            if session.default_buffer.text:
                return ""
            if self._leaving:
                return None
            self._leaving = True
            self._console.print(self._texts("leave"), style="dim", soft_wrap=True)
            return ""
        except EOFError:
            return None

    async def _attend(self, line: str) -> None:
        """Process a line; meanwhile a key stops it, a progress sign is shown, and typed text is kept."""
        self._run_known.clear()
        self._doing = asyncio.create_task(self._obey(line))
        if self._session is None:
            await self._doing
            return
        working = asyncio.create_task(self._show_work())
        try:
            with stop_keys(self._session.input, self._stop, self._doing.cancel):
                await asyncio.wait({self._doing})
        finally:
            working.cancel()
            self._printer.rest()
            if self._stopping is not None:
                self._stopping.cancel()
                self._stopping = None
        if not self._doing.cancelled():
            self._doing.result()

    async def _show_work(self) -> None:
        began = time.monotonic()
        await asyncio.sleep(_WORK_AFTER_SECONDS)
        for number in range(sys.maxsize):
            key = "stopping" if self._stopping is not None else "working"
            seconds = f"{time.monotonic() - began:.0f}"
            self._printer.working(f"  {_WORK_SIGNS[number % len(_WORK_SIGNS)]} {self._texts(key, seconds=seconds)}")
            await asyncio.sleep(_WORK_EVERY_SECONDS)

    def _stop(self) -> None:
        """Stop the current work: first cancel its run; the second time stop waiting immediately."""
        assert self._doing is not None
        if self._stopping is not None:
            self._doing.cancel()
        else:
            self._stopping = asyncio.create_task(self._stop_run(self._doing))

    async def _stop_run(self, doing: asyncio.Task[None]) -> None:
        """Cancel the run being served, and stop waiting for it after a short time."""
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._run_known.wait()
                with suppress(FailedPreconditionError):  # it has ended in the meantime
                    await self._client.cancel_run(self._run_id)
                await asyncio.wait({doing})
        except TimeoutError:
            self._say_so("stops_later")
        except PhylacteryError as error:
            self._tell(error)
        doing.cancel()

    async def _obey(self, line: str) -> None:
        try:
            await self._do(line)
        except PhylacteryError as error:
            self._failed = True
            self._tell(error)
        except UnicodeEncodeError:  # non-UTF-8 bytes arrive from standard input as lone surrogates
            self._failed = True
            self._errors.print(self._texts("no_text"), style="red")

    def _tell(self, error: PhylacteryError) -> None:
        away = isinstance(error, UnavailableError) and not error.reason
        told = self._texts("away", target=self._target) if away else self._texts("failed", message=error.message)
        self._printer.end_line()
        self._errors.print(printable(told), style="red", soft_wrap=True)

    def _tell_unfollowed(self, error: PhylacteryError) -> None:
        """Report why the thread is not followed; without a terminal, each call reports its own errors."""
        if self._session is not None:
            self._tell(error)

    def _say_so(self, key: str, **values: object) -> None:
        self._printer.end_line()
        self._console.print(self._texts(key, **values), style="dim", soft_wrap=True)

    async def _tell_fate(self, fate: Fate) -> None:
        style = "dim" if fate.kind == "back" else "red"
        told = fate_text(self._texts, fate)
        self._given_up = self._given_up or fate.kind == "given_up"

        def show() -> None:
            self._printer.end_line()
            self._errors.print(told, style=style, soft_wrap=True)

        await run_in_terminal(show)

    async def _do(self, line: str) -> None:
        match line:
            case _ if found := _HELP.fullmatch(line):
                self._console.print(self._texts.help(found["topic"] or ""))
            case "/trace":
                await self._trace()
            case "/details":
                self._printer.details = not self._printer.details
                self._say_so("details_on" if self._printer.details else "details_off")
            case "/undo":
                await self._say(self._texts("undo"))
            case _ if line == "/attach" or line.startswith("/attach "):
                self._attach(line.removeprefix("/attach").strip())
            case "/drop":
                self._drop()
            case _ if found := _ANSWER.fullmatch(line):
                await self._answer(found["command"], int(found["number"] or 0), found["id"] or "")
            case _ if line.startswith("/"):
                self._console.print(self._texts("unknown", text=one_line(line)))
            case _:
                await self._say(line)

    def _attach(self, name: str) -> None:
        """Have a file sent with the next message."""
        path = Path(name).expanduser()
        try:
            self._attached.append(Attachment.from_file(path))
        except OSError:
            self._console.print(self._texts("attach_unreadable", path=one_line(str(path))))
        else:
            self._console.print(self._texts("attached", name=one_line(path.name), count=len(self._attached)))

    async def _answer(self, command: str, number: int, approval_id: str) -> None:
        """Answer, or show whole, the whole waiting card, or one call of any card by its number or id."""
        before = self._printer.shown.before(self._typed_at)
        calls, cards = before.numbered(), before.messages
        if approval_id:
            number = next((place for place, one in calls.items() if one.approval_id == approval_id), 0)
        if not calls and self._printer.shown.before().messages:
            self._console.print(self._texts("typed_before"))
        elif not calls:
            self._console.print(self._texts("nothing_waits"))
        elif approval_id and not number:
            self._console.print(self._texts("no_such_id", id=one_line(approval_id)))
        elif number in calls:
            await self._give(command, next(one for one in cards if calls[number] in one.calls), [calls[number]])
        elif len(cards) == 1 and number:
            self._console.print(self._texts("no_such_number", count=len(calls)))
        elif len(cards) == 1:
            await self._give(command, cards[0], cards[0].calls)
        else:
            listed = [f"{place}. {self._named(one)}" for place, one in calls.items()]
            told = self._texts("which", command=command, number=next(iter(calls)), calls="\n".join(listed))
            self._console.print(told, soft_wrap=True)

    def _named(self, call: ShownCall) -> str:
        drawn = self._printer.shown.call(call.approval_id)
        return one_line(drawn.action or drawn.tool) if drawn is not None else ""

    async def _give(self, command: str, card: ShownMessage, calls: Sequence[ShownCall]) -> None:
        """Answer calls of a card, exactly as they were shown, or show them whole."""
        approve = command == "/approve"
        try:
            if command == "/show":
                for call in calls:
                    self._printer.whole(await self._client.read_approval(call.approval_id, call.args_hash), call.number)
            elif approve and not all(call.own for call in calls):
                other = next(call for call in calls if not call.own)
                self._console.print(self._texts("elsewhere", id=one_line(other.approval_id)))
            elif not all(call.args_hash and call.takes(approve) for call in calls):
                await self._draw_again("not_shown", card.key)
            else:
                await self._answer_calls(card, calls, approve=approve)
        except (NotFoundError, FailedPreconditionError) as error:
            if error.reason == "APPROVAL_CHANGED":
                await self._draw_again("card_changed", card.key)
            elif error.reason in _GONE:
                self._say_so("gone", state=error.metadata.get("state", ""))
                await self._draw_again("", card.key)
            else:
                raise

    async def _answer_calls(self, card: ShownMessage, calls: Sequence[ShownCall], *, approve: bool) -> None:
        """Answer calls: the whole card in one turn, others by themselves, and show what is left of the card."""
        self._run_id = card.key
        self._run_known.set()
        first, *others = calls
        whole = all(call.own for call in calls)
        also = [(call.approval_id, call.args_hash) for call in others] if whole else []
        try:
            for call in () if whole else reversed(others):  # last the one that the run waits for: then it goes on
                await self._client.answer_call(call.approval_id, call.args_hash, approve=approve)
            turn = await self._client.answer_call(first.approval_id, first.args_hash, approve=approve, also=also)
        except DeadlineError:  # the turn continues, and is followed
            self._say_so("late")
            return
        await self._following.show_up_to(turn.last_sequence)
        left = turn.pending_approval
        if left is not None and not self._printer.shown.is_shown(left.run_id, left):
            self._printer.ask(left)

    async def _draw_again(self, key: str, run_id: str) -> None:
        """Show a run's card as it is now, after a sentence that says why; forget it if the run waits no more."""
        thread = await self._client.get_thread(self._thread_id)
        left = next((one for one in cards_of(thread) if one.run_id == run_id), None)
        if left is None:
            self._printer.shown.remove(run_id)
        if key:
            self._say_so(key if left is not None else "nothing_waits")
        if left is not None and not (not key and self._printer.shown.is_shown(run_id, left)):
            self._printer.ask(left)

    async def _say(self, text: str) -> None:
        """Send a message with the waiting card, so that the agent reads a clear yes or no as its answer.

        If the agent is unavailable, messages are kept and sent in order once it is back.
        """
        shown = self._printer.shown
        newest, named = shown.newest(self._typed_at), shown.before(self._typed_at).named()
        message = _Message(text, new_request_id(), newest, tuple(self._attached), named)
        self._attached.clear()
        if self._unsent:
            self._keep(message)
            return
        try:
            async with aclosing(self._stream(message)) as events:
                async for event in events:
                    self._following.show_own(event)
                    self._run_id = event.run_id
                    self._run_known.set()
        except DeadlineError:  # the turn continues, and is followed
            self._say_so("late")
        except UnavailableError as error:
            if self._session is None:
                raise
            if self._keeper is None or error.reason:  # the state of managed services is reported separately
                self._tell(error)
            self._keep(message)

    def _stream(self, message: _Message) -> AsyncGenerator[Event]:
        """Send a message, repeatedly if necessary: its request_id makes it idempotent."""
        return self._client.stream_message(
            message.text,
            thread_id=self._thread_id,
            graph=self._options.graph,
            language=self._options.language or "",
            shown=message.shown,
            named=message.named,
            attachments=message.attachments,
            request_id=message.request_id,
        )

    def _keep(self, message: _Message) -> None:
        self._unsent.append(message)
        self._say_so("kept", count=len(self._unsent))
        if self._delivering is None or self._delivering.done():
            self._delivering = asyncio.create_task(self._deliver())

    async def _deliver(self) -> None:
        """Send kept messages in order once the agent accepts them; their events are followed."""
        while self._unsent:
            message = self._unsent[0]
            try:
                async with aclosing(self._stream(message)) as events:
                    async for _ in events:
                        break
            except UnavailableError:
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            except PhylacteryError as error:
                await run_in_terminal(lambda error=error: self._tell(error))  # type: ignore[misc]
            self._following.opened()
            if self._unsent and self._unsent[0] is message:
                self._unsent.popleft()

    def _drop(self) -> None:
        """Drop the unsent messages."""
        if self._delivering is not None:
            self._delivering.cancel()
        if self._unsent:
            self._say_so("dropped", count=len(self._unsent))
        else:
            self._say_so("nothing_kept")
        self._unsent.clear()

    async def _trace(self) -> None:
        if not self._printer.last_run_id:
            self._console.print(self._texts("no_turn"))
            return
        run = await self._client.get_run(self._printer.last_run_id)
        await asyncio.sleep(_SPANS_PAUSE_SECONDS)
        spans = spans_of(self._options.data_dir, run.trace_id) if self._options.data_dir else []
        self._console.print(trace_tree(spans) if spans else self._texts("no_spans"))


async def talk(target: str, console: Console, texts: Texts, options: ChatOptions) -> bool:
    """Open a chat with the agent at target; return False as Chat.run does."""
    async with PhylacteryClient(target, token=options.token, retry_seconds=0) as client:
        return await Chat(client, console, texts, target=target, options=options).run()

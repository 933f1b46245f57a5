"""A thread as a chat shows it: every event once, whoever brings it, and also what nobody in this chat asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from phylactery_client import PhylacteryClient, PhylacteryError
from phylactery_client.errors import NotFoundError, OutOfRangeError, UnavailableError
from phylactery_client.results import Event, PendingApproval, Thread
from prompt_toolkit.application import run_in_terminal

from phylactery_cli.render.render import EventPrinter

_AGAIN_SECONDS = 1.0
_TAIL_EVENTS = 200
"""How far back the last turn is looked for when a chat is opened."""
_TAIL_MESSAGES = 20
_TAIL_SECONDS, _QUESTION_SECONDS = 30.0, 5.0


def cards_of(thread: Thread) -> Sequence[PendingApproval]:
    """Return the cards that wait in a thread, the newest first, also as an agent says it that knows of one alone."""
    return thread.pending_approvals or ((thread.pending_approval,) if thread.pending_approval else ())


class Shown:
    """Which events of a thread stand on the terminal. Their sequences have no gap, but may come by two ways."""

    def __init__(self) -> None:
        self.up_to = -1
        """Everything up to here was shown, or was there before the chat; -1 where nobody knows yet."""
        self._beyond: set[int] = set()

    def begin(self, sequence: int) -> None:
        """Take everything up to a sequence as shown; 0 is a new thread."""
        self.up_to = sequence
        self._beyond = {one for one in self._beyond if one > sequence} if sequence else set()
        self._advance()

    def has(self, sequence: int) -> bool:
        """Return whether an event was shown."""
        return sequence <= self.up_to or sequence in self._beyond

    def add(self, sequence: int) -> None:
        """Note that an event is shown."""
        self._beyond.add(sequence)
        if self.up_to >= 0:
            self._advance()

    def _advance(self) -> None:
        while self.up_to + 1 in self._beyond:
            self.up_to += 1
            self._beyond.remove(self.up_to)


class Following:
    """Shows what happens in one thread, above what a person is typing."""

    def __init__(
        self,
        client: PhylacteryClient,
        thread_id: str,
        printer: EventPrinter,
        *,
        tell: Callable[[PhylacteryError], None],
    ) -> None:
        """Tell says why nothing can be followed."""
        self._client, self._thread_id, self._printer, self._tell = client, thread_id, printer, tell
        self._shown = Shown()
        self._told = self._begun = False
        self._opened = asyncio.Event()
        self.started = asyncio.Event()
        """Set once the thread was looked at, whatever came of it."""

    def show(self, event: Event) -> None:
        """Print an event, unless it was printed already."""
        if not self._shown.has(event.sequence):
            self._shown.add(event.sequence)
            self._printer.show(event.raw)

    def show_own(self, event: Event) -> None:
        """Print an event of a turn that was asked for here, unless it was printed already."""
        self.opened()
        self.show(event)

    def opened(self) -> None:
        """Note that there is a thread: something was said in it."""
        self._opened.set()

    async def run(self) -> None:
        """Show the last turn and then each event as it comes, until it is cancelled."""
        while True:
            try:
                await self._watch()
            except NotFoundError:  # nobody opened it yet, or somebody deleted it: the next message opens it
                self._shown.begin(0)
                self.started.set()
                await self._opened.wait()
                self._opened.clear()
                continue
            except OutOfRangeError:  # events are gone, or the agent's database was restored: where it stands now
                self._shown.up_to = -1
            except PhylacteryError as error:
                await self._tell_once(error)
            finally:
                self.started.set()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _watch(self) -> None:
        if self._shown.up_to < 0:
            await self._begin()
        watching = self._client.watch_thread(self._thread_id, after_sequence=self._shown.up_to, reconnect=False)
        async with aclosing(watching) as events:
            self.started.set()
            async for event in events:
                self._told = False
                if not self._shown.has(event.sequence):
                    await run_in_terminal(lambda event=event: self.show(event))  # type: ignore[misc]

    async def _begin(self) -> None:
        """Show the person's last words, what the agent said since, and what waits for them."""
        thread = await self._client.get_thread(self._thread_id)
        said = [event for event in await self._last_turn(thread) if not self._shown.has(event.sequence)]
        question = await self._question(thread) if self._shown.up_to < 0 and not self._begun else ""
        self._begun = True
        self._shown.begin(thread.last_sequence)
        await run_in_terminal(lambda: self._recall(thread, question, said))

    def _recall(self, thread: Thread, question: str, said: list[Event]) -> None:
        self._printer.last_run_id = thread.last_run.id if thread.last_run else ""
        if question:
            self._printer.asked(question)
        for event in said:
            self._printer.show(event.raw)
        for card in reversed(cards_of(thread)):
            self._printer.ask(card)

    async def _question(self, thread: Thread) -> str:
        """Return what the person said last, empty where nobody can say: it may not be kept, or memory be away."""
        try:
            page = await self._client.list_messages(
                self._thread_id, page_size=_TAIL_MESSAGES, timeout=_QUESTION_SECONDS
            )
        except PhylacteryError:
            return ""
        newest = thread.last_run.id if thread.last_run else ""
        return next((one.text for one in page.messages if one.role == "user" and one.run_id == newest), "")

    async def _last_turn(self, thread: Thread) -> list[Event]:
        """Return the messages of the newest turn and those after it, reminders among them."""
        found: list[Event] = []
        after = max(thread.first_sequence - 1, thread.last_sequence - _TAIL_EVENTS)
        if after >= thread.last_sequence:
            return found
        watching = self._client.watch_thread(
            self._thread_id, after_sequence=after, reconnect=False, timeout=_TAIL_SECONDS
        )
        async with aclosing(watching) as events:
            async for event in events:
                if event.kind == "run_started":
                    found.clear()
                elif event.kind == "message":
                    found.append(event)
                if event.sequence >= thread.last_sequence:
                    break
        return found

    async def _tell_once(self, error: PhylacteryError) -> None:
        """Say it before anything was followed, and again only after something was."""
        if not self._told and (self._shown.up_to < 0 or not isinstance(error, UnavailableError)):
            await run_in_terminal(lambda: self._tell(error))
        self._told = True

"""Following a thread in a chat: every event is shown once, including events of turns started elsewhere."""

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
"""How many events back the last turn is searched for when a chat is opened."""
_TAIL_MESSAGES = 20
_TAIL_SECONDS, _QUESTION_SECONDS = 30.0, 5.0


def cards_of(thread: Thread) -> Sequence[PendingApproval]:
    """Return a thread's waiting approval cards, newest first; an older agent reports only one."""
    return thread.pending_approvals or ((thread.pending_approval,) if thread.pending_approval else ())


class Shown:
    """The set of shown events. Their sequence numbers have no gaps, but may arrive over two streams."""

    def __init__(self) -> None:
        self.up_to = -1
        """All events up to here were shown, or are from before the chat; -1 while unknown."""
        self._beyond: set[int] = set()

    def begin(self, sequence: int) -> None:
        """Mark everything up to a sequence number as shown; 0 is a new thread."""
        self.up_to = sequence
        self._beyond = {one for one in self._beyond if one > sequence} if sequence else set()
        self._advance()

    def has(self, sequence: int) -> bool:
        """Return True if an event was shown."""
        return sequence <= self.up_to or sequence in self._beyond

    def add(self, sequence: int) -> None:
        """Mark an event as shown."""
        self._beyond.add(sequence)
        if self.up_to >= 0:
            self._advance()

    def _advance(self) -> None:
        while self.up_to + 1 in self._beyond:
            self.up_to += 1
            self._beyond.remove(self.up_to)


class Following:
    """Shows a thread's events above the prompt."""

    def __init__(
        self,
        client: PhylacteryClient,
        thread_id: str,
        printer: EventPrinter,
        *,
        tell: Callable[[PhylacteryError], None],
    ) -> None:
        """``tell`` reports why the thread cannot be followed."""
        self._client, self._thread_id, self._printer, self._tell = client, thread_id, printer, tell
        self._shown = Shown()
        self._told = self._begun = False
        self._opened = asyncio.Event()
        self.started = asyncio.Event()
        """Set after the first look at the thread, whatever its result."""

    def show(self, event: Event) -> None:
        """Print an event, unless it was already printed."""
        if not self._shown.has(event.sequence):
            self._shown.add(event.sequence)
            self._printer.show(event.raw)

    def show_own(self, event: Event) -> None:
        """Print an event of a turn started here, unless it was already printed."""
        self.opened()
        self.show(event)

    async def show_up_to(self, sequence: int) -> None:
        """Print every event of the thread up to a sequence that was not printed yet."""
        after = max(self._shown.up_to, 0)
        if after >= sequence:
            return
        watching = self._client.watch_thread(self._thread_id, after_sequence=after, reconnect=False)
        async with aclosing(watching) as events:
            async for event in events:
                self.show(event)
                if event.sequence >= sequence:
                    return

    def opened(self) -> None:
        """Signal that the thread exists, because a message was sent."""
        self._opened.set()

    async def run(self) -> None:
        """Show the last turn and then each new event, until cancelled."""
        while True:
            try:
                await self._watch()
            except NotFoundError:  # not opened yet, or deleted: the next message opens it
                self._shown.begin(0)
                self.started.set()
                await self._opened.wait()
                self._opened.clear()
                continue
            except OutOfRangeError:  # events removed or a database restored: start again
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
        """Show the person's last message, the agent's replies since, and waiting approvals."""
        thread = await self._client.get_thread(self._thread_id)
        said = [event for event in await self._last_turn(thread) if not self._shown.has(event.sequence)]
        newest = next((event.run_id for event in reversed(said) if event.run_id), "")
        newest = newest or (thread.last_run.id if thread.last_run else "")
        question = await self._question(newest) if self._shown.up_to < 0 and not self._begun else ""
        self._begun = True
        self._shown.begin(thread.last_sequence)
        await run_in_terminal(lambda: self._recall(thread, newest, question, said))

    def _recall(self, thread: Thread, newest: str, question: str, said: list[Event]) -> None:
        self._printer.last_run_id = newest
        if question:
            self._printer.asked(question)
        for event in said:
            self._printer.show(event.raw)
        for card in reversed(cards_of(thread)):
            self._printer.ask(card)

    async def _question(self, newest: str) -> str:
        """Return the person's last message to the newest run, '' if it is not stored or memory is unavailable."""
        try:
            page = await self._client.list_messages(
                self._thread_id, page_size=_TAIL_MESSAGES, timeout=_QUESTION_SECONDS
            )
        except PhylacteryError:
            return ""
        return next((one.text for one in page.messages if one.role == "user" and one.run_id == newest), "")

    async def _last_turn(self, thread: Thread) -> list[Event]:
        """Return the messages of the newest turn and of later ones, including reminders."""
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
        """Report an error before anything was followed, and once after each successful stretch."""
        if not self._told and (self._shown.up_to < 0 or not isinstance(error, UnavailableError)):
            await run_in_terminal(lambda: self._tell(error))
        self._told = True

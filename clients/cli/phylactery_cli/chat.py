"""The conversation in the terminal: events as they happen, approvals set apart, a few commands."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path

from phylactery_client import PhylacteryClient, PhylacteryError
from phylactery_client.errors import DeadlineError, UnavailableError
from prompt_toolkit import PromptSession
from rich.console import Console

from phylactery_cli.following import Following
from phylactery_cli.render import EventPrinter
from phylactery_cli.terminal import one_line, printable
from phylactery_cli.texts import Texts
from phylactery_cli.traces import spans_of, trace_tree

_ANSWER = re.compile(r"(?P<command>/approve|/reject)(?: +(?P<number>[1-9][0-9]?))?")
_SPANS_PAUSE_SECONDS = 0.1
"""The agent's last spans end just after its answer; a short wait shows them too."""
_DEATH_SECONDS, _POLL_SECONDS = 1.0, 0.05
"""How long a service that hung up may take to be seen dead."""


class Chat:
    """One person in one thread."""

    def __init__(
        self,
        client: PhylacteryClient,
        console: Console,
        texts: Texts,
        *,
        target: str,
        thread_id: str,
        data_dir: Path | None,
        graph: str = "",
        still_up: Callable[[], str | None] | None = None,
    ) -> None:
        """still_up answers why a chat that started the services itself cannot go on, None while it can."""
        self._client, self._console, self._texts, self._target = client, console, texts, target
        self._thread_id, self._data_dir, self._graph = thread_id, data_dir, graph
        self._still_up = still_up
        self._printer = EventPrinter(console, texts)
        self._following = Following(client, thread_id, self._printer, tell=self._tell, gone=self._gone)
        self._session: PromptSession[str] | None = PromptSession() if sys.stdin.isatty() else None

    async def run(self) -> None:
        """Talks until the person leaves, or until the services are gone."""
        following = asyncio.create_task(self._following.run())
        try:
            await self._following.started.wait()
            while (typed := await self._typed(following)) is not None:
                line = typed.strip()
                if line in ("/quit", "/exit", "/salir"):
                    return
                if line:
                    await self._obey(line)
                if self._why_over() is not None:
                    break
            if reason := self._why_over():
                self._console.print(reason, style="red", soft_wrap=True)
        finally:
            following.cancel()
            await asyncio.wait({following})

    async def _typed(self, following: asyncio.Task[None]) -> str | None:
        """Answers the next line; without a terminal, one of standard input. None at the end, of the services too."""
        if self._session is None:
            line = await asyncio.to_thread(sys.stdin.readline)
            return line.rstrip("\n") if line else None
        self._printer.above_prompt(prompting=True)
        prompt = asyncio.create_task(self._prompt(self._session))
        try:
            await asyncio.wait({prompt, following}, return_when=asyncio.FIRST_COMPLETED)
            return prompt.result() if prompt.done() else None
        finally:
            self._printer.above_prompt(prompting=False)
            prompt.cancel()
            with suppress(asyncio.CancelledError):
                await prompt

    async def _prompt(self, session: PromptSession[str]) -> str | None:
        try:
            return await session.prompt_async(f"\n{self._texts('you')} › ")
        except KeyboardInterrupt:  # it takes back what was typed, and leaves where nothing was
            return "" if session.default_buffer.text else None
        except EOFError:
            return None

    def _why_over(self) -> str | None:
        return self._still_up() if self._still_up is not None else None

    async def _gone(self) -> str | None:
        """Answers why an agent that hung up will not come back, once that can be seen; None where it may."""
        if self._still_up is None:
            return None
        for _ in range(round(_DEATH_SECONDS / _POLL_SECONDS)):
            if reason := self._still_up():
                return reason
            await asyncio.sleep(_POLL_SECONDS)
        return None

    async def _obey(self, line: str) -> None:
        try:
            await self._do(line)
        except PhylacteryError as error:
            if not (isinstance(error, UnavailableError) and await self._gone()):
                self._tell(error)
        except UnicodeEncodeError:  # bytes that are no UTF-8 come from standard input as lone surrogates
            self._console.print(self._texts("no_text"), style="red")

    def _tell(self, error: PhylacteryError) -> None:
        away = isinstance(error, UnavailableError) and not error.reason
        told = self._texts("away", target=self._target) if away else self._texts("failed", message=error.message)
        self._console.print(printable(told), style="red", soft_wrap=True)

    async def _do(self, line: str) -> None:
        match line:
            case "/help":
                self._console.print(self._texts("help"))
            case "/trace":
                await self._trace()
            case "/undo":
                await self._say(self._texts("undo"))
            case _ if found := _ANSWER.fullmatch(line):
                await self._answer(found["command"], int(found["number"] or 0))
            case _ if line.startswith("/"):
                self._console.print(self._texts("unknown", text=one_line(line)))
            case _:
                await self._say(line)

    async def _answer(self, command: str, number: int) -> None:
        """Answers the card that waits: all of it, or one call of it by its number."""
        card = self._printer.waiting
        if card is None:
            self._console.print(self._texts("nothing_waits"))
            return
        each = (card, *card.also)
        if number > len(each):
            self._console.print(self._texts("no_such_number", count=len(each)))
            return
        one = each[max(number - 1, 0)]
        if not one.code:
            self._console.print(self._texts("elsewhere", id=one_line(one.approval_id)))
        elif card.also and not number:
            await self._say(self._texts("yes" if command == "/approve" else "no"))
        elif command == "/approve":
            await self._say(f"{self._texts('approve_verb')} {one.approval_id} {one.code}")
        else:
            await self._say(f"{self._texts('reject_verb')} {one.approval_id}")
        if number and one is not card and self._printer.waiting is card:  # the first still waits: what is left is shown
            thread = await self._client.get_thread(self._thread_id)
            if thread.pending_approval is not None:
                self._printer.ask(thread.pending_approval)

    async def _say(self, text: str) -> None:
        """Says something, with what stands on the card that waits: the agent reads a clear yes or no as its answer."""
        said = self._client.stream_message(
            text, thread_id=self._thread_id, graph=self._graph, shown=self._printer.waiting, timeout=120
        )
        try:
            async with aclosing(said) as events:
                async for event in events:
                    self._following.show_own(event)
        except DeadlineError:  # the turn goes on, and is followed
            self._console.print(self._texts("late"), style="yellow", soft_wrap=True)

    async def _trace(self) -> None:
        if not self._printer.last_run_id:
            self._console.print(self._texts("no_turn"))
            return
        run = await self._client.get_run(self._printer.last_run_id)
        await asyncio.sleep(_SPANS_PAUSE_SECONDS)
        spans = spans_of(self._data_dir, run.trace_id) if self._data_dir else []
        self._console.print(trace_tree(spans) if spans else self._texts("no_spans"))


async def talk(
    target: str,
    console: Console,
    texts: Texts,
    *,
    thread_id: str,
    token: str = "",
    data_dir: Path | None = None,
    graph: str = "",
    still_up: Callable[[], str | None] | None = None,
) -> None:
    """Opens the conversation with the agent at target; graph serves a new one, empty is the agent's own choice."""
    async with PhylacteryClient(target, token=token) as client:
        chat = Chat(
            client,
            console,
            texts,
            target=target,
            thread_id=thread_id,
            data_dir=data_dir,
            graph=graph,
            still_up=still_up,
        )
        await chat.run()

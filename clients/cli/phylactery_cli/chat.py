"""The conversation in the terminal: events as they happen, approvals set apart, a few commands."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

from phylactery_client import PhylacteryClient, PhylacteryError
from phylactery_client.errors import NotFoundError, UnavailableError
from prompt_toolkit import PromptSession
from rich.console import Console

from phylactery_cli.render import EventPrinter
from phylactery_cli.terminal import one_line, printable
from phylactery_cli.texts import Texts
from phylactery_cli.traces import spans_of, trace_tree

_SPANS_PAUSE_SECONDS = 0.1
"""The agent's last spans end just after its answer; a short wait shows them too."""


async def _typed(texts: Texts) -> AsyncIterator[str]:
    """Answers what the person types, line by line; without a terminal, the lines of standard input."""
    if not sys.stdin.isatty():
        while line := await asyncio.to_thread(sys.stdin.readline):
            yield line.rstrip("\n")
        return
    session: PromptSession[str] = PromptSession()
    while True:
        try:
            line = await session.prompt_async(f"\n{texts('you')} › ")
        except (EOFError, KeyboardInterrupt):
            return
        yield line


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
    ) -> None:
        self._client, self._console, self._texts, self._target = client, console, texts, target
        self._thread_id, self._data_dir, self._graph = thread_id, data_dir, graph
        self._printer = EventPrinter(console, texts)

    async def run(self, still_up: Callable[[], str | None] = lambda: None) -> None:
        """Talks until the person leaves; still_up answers why it cannot go on, None while it can."""
        await self._recall()
        async for typed in _typed(self._texts):
            line = typed.strip()
            if line in ("/quit", "/exit", "/salir"):
                return
            if line:
                await self._obey(line)
            if reason := still_up():
                self._console.print(reason, style="red", soft_wrap=True)
                return

    async def _recall(self) -> None:
        """Shows what the thread waited for when it was left."""
        try:
            thread = await self._client.get_thread(self._thread_id)
        except NotFoundError:
            return  # a new thread, which is nothing to tell
        except PhylacteryError as error:
            self._tell(error)
            return
        self._printer.last_run_id = thread.last_run.id if thread.last_run else ""
        if thread.pending_approval is not None:
            self._printer.ask(thread.pending_approval)

    async def _obey(self, line: str) -> None:
        try:
            await self._do(line)
        except PhylacteryError as error:
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
            case "/approve" | "/reject":
                await self._answer(line)
            case _ if line.startswith("/"):
                self._console.print(self._texts("unknown", text=one_line(line)))
            case _:
                await self._say(line)

    async def _answer(self, command: str) -> None:
        waiting = self._printer.waiting
        if waiting is None:
            self._console.print(self._texts("nothing_waits"))
        elif not waiting.code:
            self._console.print(self._texts("elsewhere", id=one_line(waiting.approval_id)))
        elif command == "/approve":
            await self._say(f"{self._texts('approve_verb')} {waiting.approval_id} {waiting.code}")
        else:
            await self._say(f"{self._texts('reject_verb')} {waiting.approval_id}")

    async def _say(self, text: str) -> None:
        said = self._client.stream_message(text, thread_id=self._thread_id, graph=self._graph, timeout=120)
        async with aclosing(said) as events:
            async for event in events:
                self._printer.show(event.raw)

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
    still_up: Callable[[], str | None] = lambda: None,
) -> None:
    """Opens the conversation with the agent at target; graph serves a new one, empty is the agent's own choice."""
    async with PhylacteryClient(target, token=token) as client:
        chat = Chat(client, console, texts, target=target, thread_id=thread_id, data_dir=data_dir, graph=graph)
        await chat.run(still_up)

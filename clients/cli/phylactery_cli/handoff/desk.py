"""The interactive terminal of a person who works the queue: a live view of it, and one conversation at a time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from phylactery_client import EscalationClient, PhylacteryError, new_request_id
from phylactery_client.errors import NotFoundError, OutOfRangeError
from phylactery_client.escalations import Escalation, EscalationEntry
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from rich.console import Console
from rich.text import Text

from phylactery_cli.calling import print_table
from phylactery_cli.handoff.showing import cells, detail_lines, entry_line
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.terminal import one_line, printable

_AGAIN_SECONDS = 1.0
_RENEW_SECONDS = 15.0
"""How often a claim is renewed while something is typed; one left alone expires."""
_LEAVE = ("/quit", "/exit", "/salir")
_OVER = ("CLAIM_EXPIRED", "CLAIM_REQUIRED", "CLAIM_TAKEN", "ESCALATION_ENDED")


class Desk:
    """The desk of one handler, who has at most one conversation at a time."""

    def __init__(self, client: EscalationClient, console: Console, texts: Texts, *, name: str) -> None:
        """``name`` is what the people see who are answered."""
        self._client, self._console, self._texts, self._name = client, console, texts, name
        self._session: PromptSession[str] | None = PromptSession() if sys.stdin.isatty() else None
        self._listed: Sequence[Escalation] = ()
        self._mine: Escalation | None = None
        self._sequence = 0
        self._shown: set[int] = set()
        """Entries made here, which were confirmed already."""
        self.failed = False

    async def run(self) -> bool:
        """Work the queue until the person leaves; return False if a command failed and there is no terminal."""
        await self._list()
        self._console.print(self._texts("handoff_hint"), style="dim", soft_wrap=True)
        beside = [asyncio.create_task(self._watch()), asyncio.create_task(self._keep_claim())]
        try:
            while (line := await self._typed()) is not None and line not in _LEAVE:
                if line:
                    await self._obey(line)
                if self.failed and self._session is None:
                    return False
            if self._mine is not None:
                self._say("handoff_left", id=self._mine.escalation_id)
            return True
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _typed(self) -> str | None:
        """Return the next line, None at the end of the input."""
        if self._session is None:
            line = await asyncio.to_thread(sys.stdin.readline)
            return line.strip() if line else None
        where = self._mine.subject if self._mine is not None else self._texts("handoff_prompt")
        try:
            return (await self._session.prompt_async(f"\n{one_line(where)} › ")).strip()
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None

    async def _obey(self, line: str) -> None:
        try:
            await self._do(line)
        except PhylacteryError as error:
            self.failed = True
            if error.reason in _OVER and self._mine is not None and not line.startswith("/claim"):
                self._say("handoff_lost", style="red", id=self._mine.escalation_id)
                self._mine = None
            else:
                self._print(Text(self._texts("failed", message=printable(error.message)), style="red"))
            if not line.startswith("/"):  # the words are not lost with the claim
                self._say("handoff_not_sent", style="red", text=printable(line))

    async def _do(self, line: str) -> None:
        command, _, rest = line.partition(" ")
        rest = rest.strip()
        match command:
            case "/list":
                await self._list()
            case "/help":
                self._console.print(self._texts("handoff_help"))
            case "/claim":
                await self._claim(rest or "1")
            case "/show":
                await self._show(rest)
            case "/note" | "/release" | "/queue" if self._mine is None:
                self._say("handoff_have_none")
            case "/note":
                await self._note(rest)
            case "/release":
                await self._give_back(rest, "AGENT", "handoff_released")
            case "/queue":
                await self._give_back(rest, "QUEUE", "handoff_requeued")
            case _ if line.startswith("/"):
                self._print(Text(self._texts("unknown", text=one_line(line))))
            case _:
                await self._reply(line)

    async def _list(self) -> None:
        page = await self._client.list(page_size=100)
        self._listed = page.escalations
        if not self._sequence:
            self._sequence = page.last_sequence
        if not self._listed:
            self._say("handoff_none")
            return
        columns = ("", *self._texts.columns("handoff_columns"))
        rows = [(number, *cells(self._texts, one)) for number, one in enumerate(self._listed, 1)]
        print_table(columns, rows)

    def _named(self, name: str) -> str:
        """Return the id of an escalation by its number in the last list, or as it was typed."""
        number = int(name) if name.isascii() and name.isdigit() else 0
        return self._listed[number - 1].escalation_id if 0 < number <= len(self._listed) else name

    async def _claim(self, name: str) -> None:
        wanted = self._named(name)
        if self._mine is not None and self._mine.escalation_id != wanted:
            self._say("handoff_have_one", id=self._mine.escalation_id)
            return
        try:
            claimed = await self._client.claim(wanted, display_name=self._name)
        except NotFoundError:
            self._say("handoff_no_such", name=one_line(name))
            return
        self._mine = claimed
        await self._print_detail(claimed.escalation_id)
        until = f"{claimed.claim_expire_time:%H:%M:%S} UTC" if claimed.claim_expire_time else ""
        self._say("handoff_claimed", id=claimed.escalation_id, until=until, person=one_line(claimed.subject))

    async def _show(self, name: str) -> None:
        if not name and self._mine is None:
            self._say("handoff_have_none")
            return
        wanted = self._named(name) if name or self._mine is None else self._mine.escalation_id
        try:
            await self._print_detail(wanted)
        except NotFoundError:
            self._say("handoff_no_such", name=one_line(name))

    async def _print_detail(self, escalation_id: str) -> None:
        for line in detail_lines(self._texts, await self._client.get(escalation_id)):
            self._print(line)

    async def _note(self, text: str) -> None:
        assert self._mine is not None
        entry = await self._client.add_note(self._mine.escalation_id, text, request_id=new_request_id())
        self._shown.add(entry.sequence)
        self._say("handoff_noted")

    async def _reply(self, text: str) -> None:
        if self._mine is None:
            self._say("handoff_have_none")
            return
        entry = await self._client.reply(self._mine.escalation_id, text, request_id=new_request_id())
        self._shown.add(entry.sequence)
        self._say("handoff_replied")

    async def _give_back(self, summary: str, to: str, told: str) -> None:
        assert self._mine is not None
        mine = self._mine
        await self._client.release(mine.escalation_id, summary=summary, to=to)
        self._mine = None
        self._say(told, id=mine.escalation_id)

    async def _keep_claim(self) -> None:
        """Renew the claim while the person types."""
        before = ""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            typed = self._session.default_buffer.text if self._session is not None else ""
            mine, changed, before = self._mine, typed not in ("", before), typed
            left = (
                (mine.claim_expire_time - datetime.now(UTC)).total_seconds() if mine and mine.claim_expire_time else 0
            )
            if mine is None or not (changed or (typed and left < 2 * _RENEW_SECONDS)):
                continue
            with suppress(PhylacteryError):  # a claim that is over is reported by what is sent next
                self._mine = await self._client.renew(mine.escalation_id)

    async def _watch(self) -> None:
        """Show what happens in the queue above the prompt, from where the first list was read."""
        while True:
            try:
                async with aclosing(self._client.watch(after_sequence=self._sequence)) as entries:
                    async for entry in entries:
                        self._sequence = entry.sequence
                        await self._above(lambda entry=entry: self._tell(entry))  # type: ignore[misc]
            except OutOfRangeError:  # an older copy of the database: go on from where it is
                self._sequence = (await self._client.list(page_size=1)).last_sequence
            except PhylacteryError:
                await asyncio.sleep(_AGAIN_SECONDS)

    def _tell(self, entry: EscalationEntry) -> None:
        mine = self._mine
        of_mine = mine is not None and entry.escalation_id == mine.escalation_id
        if entry.sequence in self._shown:
            self._shown.discard(entry.sequence)
            return
        if of_mine and entry.kind in ("EXPIRED", "RELEASED", "REQUEUED"):
            assert mine is not None
            self._mine = None
            self._say("handoff_lost", style="red", id=mine.escalation_id)
            return
        if of_mine and entry.kind != "CLAIMED":
            assert mine is not None
            self._print(entry_line(self._texts, entry, mine.subject, named=False))
        elif not of_mine and entry.kind not in ("MESSAGE", "REPLY", "NOTE"):
            self._print(entry_line(self._texts, entry, "", named=True))

    async def _above(self, show: Callable[[], None]) -> None:
        if self._session is None:
            show()
        else:
            await run_in_terminal(show)

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)

    def _say(self, key: str, *, style: str = "dim", **values: object) -> None:
        self._console.print(self._texts(key, **values), style=style, soft_wrap=True)


async def work(target: str, token: str, console: Console, texts: Texts, *, name: str) -> bool:
    """Open the desk; return False as Desk.run does. Raise PhylacteryError if the queue cannot be read."""
    async with EscalationClient(target, token=token, retry_seconds=0) as client:
        return await Desk(client, console, texts, name=name).run()

"""Bridge conversations that wait for a person to another help desk. Usage: bridge_desk.py DESK_URL STATE_FILE [AGENT].

The desk has two routes; change `Desk` to those of yours:
    POST /entries          takes {"id", "ticket", "kind", "text"}; an id that comes again is the same entry
    GET /replies?after=N   lists [{"id", "ticket", "text", "close"}, …] of the people there, in the order of their ids
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from phylactery_client import EscalationClient, PhylacteryError

NAME = "Support"
"""What people see as the name of who answers; with a token it is the token's."""
PAUSE_SECONDS = 1.0
RENEW_SECONDS = 60.0
"""Far less than AGENT_HANDOFF_CLAIM_SECONDS, so that a slow desk loses no claim."""


class Desk:
    """The other help desk, over HTTP."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise SystemExit(f"{url} is no address of a help desk; name one that begins with https://")
        self._url = url.rstrip("/")

    async def enter(self, **entry: str) -> None:
        """Add an entry to a ticket."""
        await self._call("/entries", json.dumps(entry).encode())

    async def replies(self, after: int) -> list[dict[str, Any]]:
        """Return what people at the desk wrote after a reply."""
        listed: list[dict[str, Any]] = await self._call(f"/replies?after={after}")
        return listed

    async def _call(self, route: str, body: bytes | None = None) -> Any:
        """Call until the desk answers: what waits here is not lost while it is away."""
        while True:
            try:
                return await asyncio.to_thread(self._once, route, body)
            except OSError as error:
                print(f"the desk does not answer: {error}", flush=True)
                await asyncio.sleep(5 * PAUSE_SECONDS)

    def _once(self, route: str, body: bytes | None) -> Any:
        request = urllib.request.Request(self._url + route, body, {"content-type": "application/json"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the address is checked above
            return json.loads(answer.read() or b"null")


class State:
    """How far both sides were read. A position is kept after its work is done, so a killed bridge does it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.at = {"entry": 0, "reply": 0} | (json.loads(path.read_text()) if path.exists() else {})

    def keep(self, side: str, position: int) -> None:
        """Note a position."""
        self.at[side] = position
        part = self._path.with_name(f"{self._path.name}.part")
        part.write_text(json.dumps(self.at))
        part.replace(self._path)


async def to_desk(queue: EscalationClient, desk: Desk, state: State) -> None:
    """Make a ticket of what waits, and pass on what its person writes."""
    async for entry in queue.watch(after_sequence=state.at["entry"]):
        if entry.kind in ("OPENED", "REQUEUED"):
            try:
                # before the ticket is made: of two bridges one gets the claim, so there is one ticket
                await queue.claim(entry.escalation_id, display_name=NAME)
            except PhylacteryError as error:
                print(f"{entry.escalation_id} is not ours: {error.reason}", flush=True)
            else:
                detail = await queue.get(entry.escalation_id)
                said = "\n".join(f"{message.role}: {message.text}" for message in detail.conversation)
                await desk.enter(
                    id=f"entry-{entry.sequence}",
                    ticket=entry.escalation_id,
                    kind="OPENED",
                    text=f"{entry.text}\n\n{said}",
                )
        elif entry.kind in ("MESSAGE", "RELEASED", "CLOSED", "EXPIRED"):
            await desk.enter(id=f"entry-{entry.sequence}", ticket=entry.escalation_id, kind=entry.kind, text=entry.text)
        state.keep("entry", entry.sequence)


async def from_desk(queue: EscalationClient, desk: Desk, state: State) -> None:
    """Pass on what people at the desk write, and give the conversation back when they close a ticket."""
    while True:
        for reply in await desk.replies(state.at["reply"]):
            ticket = reply["ticket"]
            try:
                if reply["text"]:
                    # named after the desk's reply: if it is passed on again after a kill, the person gets it once
                    await queue.reply(ticket, reply["text"], request_id=f"desk-reply-{reply['id']}")
                if reply["close"]:
                    await queue.release(ticket)
            except PhylacteryError as error:
                lost = f"{error.reason}: this did not reach the person: {reply['text']}"
                await desk.enter(id=f"reply-{reply['id']}", ticket=ticket, kind="NOT_DELIVERED", text=lost)
            state.keep("reply", reply["id"])
        await asyncio.sleep(PAUSE_SECONDS)


async def keep_claims(queue: EscalationClient) -> None:
    """Renew the claims of conversations that the desk has not closed."""
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        for claimed in (await queue.list(states=["CLAIMED"], mine_only=True, page_size=100)).escalations:
            await queue.renew(claimed.escalation_id)


async def main(url: str, path: Path, target: str) -> None:
    """Run until stopped; it goes on where it was."""
    desk, state = Desk(url), State(path)
    async with EscalationClient(target) as queue, asyncio.TaskGroup() as tasks:
        tasks.create_task(to_desk(queue, desk, state))
        tasks.create_task(from_desk(queue, desk, state))
        tasks.create_task(keep_claims(queue))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1:50051"))

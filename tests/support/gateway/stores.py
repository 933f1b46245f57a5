"""The gateway's stores without its loops: a test decides when each step happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_gateway.app import prepare_database
from phylactery_gateway.channels.messages import (
    Content,
    Element,
    Identity,
    Kind,
    Option,
    Outgoing,
    Received,
    Sender,
    Status,
)
from phylactery_gateway.channels.port import SECOND_US, SendError
from phylactery_gateway.store import texts
from phylactery_gateway.store.inbox import Inbox, InboxRules
from phylactery_gateway.store.outbox import Outbox, Parcel
from phylactery_gateway.store.sealing import Sealer
from phylactery_gateway.store.turns import Threads, Turn, Turns, TurnState
from phylactery_gateway.tables import messages
from phylactery_gateway.whatsapp.channel import Template, WhatsApp
from sqlalchemy.engine import Connection

START_US = 1_800_000_000 * SECOND_US
ACCOUNT = "1"
DAY = 86_400


def person(bsuid: str = "ES.1", phone: str = "341") -> Sender:
    """Return a person; an empty id is left out."""
    pairs = (("bsuid", bsuid), ("phone", phone))
    return Sender(tuple(Identity(kind, value) for kind, value in pairs if value))


def card(approval_id: str = "ap_1", text: str = "May I?") -> Outgoing:
    """Return a question with two buttons."""
    does = {"approval": approval_id, "args_hash": f"hash of {approval_id}", "high_risk": False}
    return Outgoing(text, (Option("Sí", {**does, "approve": True}), Option("No", {**does, "approve": False})))


async def texts_of(database: Database) -> list[str]:
    """Return what the person wrote in each message that waits, '' for the others, oldest first."""
    return await database.read(
        lambda connection: [
            texts.open_message(connection, row)[0]
            for row in connection.execute(sa.select(messages).order_by(messages.c.position))
        ]
    )


async def bodies_of(database: Database, table: sa.Table) -> list[dict[str, Any]]:
    """Return the bodies of turns or of messages to send, {} for those that were emptied, oldest first."""
    key = next(iter(table.primary_key))

    def work(connection: Connection) -> list[dict[str, Any]]:
        rows = connection.execute(sa.select(table).order_by(table.c.create_us, key)).all()
        return [texts.open_body(connection, table.name, getattr(row, key.name), row.body) or {} for row in rows]

    return await database.read(work)


@dataclass
class Stores:
    """The stores, and a time in seconds that only a test moves."""

    database: Database
    channel: WhatsApp
    seconds: float = 0.0
    numbers: int = 0

    @property
    def now_us(self) -> int:
        return START_US + round(self.seconds * SECOND_US)

    @property
    def turns(self) -> Turns:
        return Turns(self.database, "this process", 60 * SECOND_US)

    @property
    def outbox(self) -> Outbox:
        return Outbox(self.database, 60 * SECOND_US)

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return await self.database.read(
            lambda connection: [tuple(row) for row in connection.execute(sa.text(query)).all()]
        )

    async def receive(self, content: Content) -> int:
        """Store an element of a webhook."""
        self.numbers += 1
        inbox = Inbox(self.database, InboxRules(0, 3_600 * SECOND_US, "es"))
        return await inbox.receive(self.channel, [Element(ACCOUNT, f"element {self.numbers}", content)], self.now_us)

    async def say(
        self,
        text: str,
        *,
        sender: Sender | None = None,
        kind: Kind = Kind.TEXT,
        option: str = "",
        at: float = -1,
        passed_on: str = "",
        refers_to: str = "",
    ) -> int:
        """Receive a message, written ``at`` that second; ``passed_on`` is what somebody else wrote in it."""
        written_us = START_US + round((self.seconds if at < 0 else at) * SECOND_US)
        wamid = f"wamid.{self.numbers + 1}"
        return await self.receive(
            Received(sender or person(), kind, text, written_us, wamid, option, refers_to, passed_on=passed_on)
        )

    async def conversation(self) -> str:
        """Return the id of the oldest conversation."""
        return str((await self.rows("SELECT conversation_id FROM conversations ORDER BY rowid"))[0][0])

    async def turn(self) -> Turn | None:
        """Return the turn that is due in the oldest conversation, as if the agent took it."""
        conversation_id = await self.conversation()
        if await self.turns.claim(conversation_id, self.now_us) is None:
            return None
        turn = await self.turns.next(conversation_id, self.now_us)
        if turn is not None:
            await self.turns.given(conversation_id, turn, TurnState.GIVEN, self.now_us)
            assert await self.turns.next(conversation_id, self.now_us) is None
        return turn

    async def turn_of_several(self) -> Turn:
        """Return the next of several turns that are due in the oldest conversation, as if the agent took it."""
        conversation_id = await self.conversation()
        await self.turns.claim(conversation_id, self.now_us)
        turn = await self.turns.next(conversation_id, self.now_us)
        assert turn is not None, "no turn is due"
        await self.turns.given(conversation_id, turn, TurnState.GIVEN, self.now_us)
        return turn

    async def told(self, *messages: Outgoing, source: str = "") -> None:
        """Add what the agent says to the outbox."""
        self.numbers += 1
        said: Sequence[tuple[str, Sequence[Outgoing]]] = [(source or f"event:{self.numbers}", messages)]
        await Threads(self.database).told(await self.conversation(), self.numbers, said, self.now_us)

    async def claim(self) -> Parcel | None:
        """Take the message that is due."""
        channels = {self.channel.name: self.channel}
        due = await self.outbox.due(self.now_us, 1, channels)
        return await self.outbox.claim(due[0], channels, self.now_us) if due else None

    async def send(self, error: SendError | None = None) -> str:
        """Send the message that is due and return its wamid."""
        parcel = await self.claim()
        assert parcel is not None, "nothing is due"
        self.numbers += 1
        wamid = f"wamid.sent.{self.numbers}"
        if error is None:
            await self.outbox.sent(parcel, wamid, self.now_us)
        else:
            await self.outbox.failed(parcel, error, self.now_us)
        return wamid

    async def status(self, status: Status) -> None:
        """Receive a status."""
        await self.receive(status)

    async def states(self) -> list[str]:
        """Return the states of everything in the outbox, oldest first."""
        return [row[0] for row in await self.rows("SELECT state FROM outbox ORDER BY position")]


def whatsapp(*, template: bool = False) -> WhatsApp:
    """Return WhatsApp as a channel that sends nothing."""

    async def nothing() -> None:
        """Close nothing."""

    graph: Any = None  # nothing is sent by it here
    return WhatsApp(
        graph,
        app_secret=lambda: "secret",
        verify_token=lambda: "verify",
        numbers=[ACCOUNT],
        template=Template("news", ["es"]) if template else None,
        close=nothing,
    )


@asynccontextmanager
async def open_stores(folder: Path, *, template: bool = False) -> AsyncIterator[Stores]:
    """Open the stores of a gateway for the block."""
    database = Database(f"sqlite:///{folder}/gateway.db", options=Sealer.from_file(folder, None).options)
    await asyncio.to_thread(prepare_database, database)

    try:
        yield Stores(database, whatsapp(template=template))
    finally:
        await asyncio.to_thread(database.close)

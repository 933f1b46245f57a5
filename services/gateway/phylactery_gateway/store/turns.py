"""Turns: messages of a person that the agent is given together, written down before it is asked.

A turn's id is the request id with which the agent is asked, made of the channel's id of its first message. Whoever asks
again, in whichever process, asks for the same turn.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_client.cards import Before, ShownCall
from phylactery_understanding.language.text import fold
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.stops import read_stop
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import FETCHED, Kind, Media, Outgoing, option_id, option_of
from phylactery_gateway.channels.port import Address
from phylactery_gateway.store import cards, lifts, people, texts
from phylactery_gateway.store import outbox as outgoing
from phylactery_gateway.store.inbox import MessageState
from phylactery_gateway.tables import NEVER_US, conversations, messages, outbox, turns

_MAX_TOGETHER: Final = 20
_MAX_FILES: Final = 8
"""The most files the agent takes with a message (docs/input.md)."""
_MAX_TEXT: Final = 20_000
_COLUMNS: Final = ("turn_id", "tries", "approval_id")
"""What of a turn is in columns of its own, and no part of its sealed body."""
_LONGEST_ANSWER: Final = 100
"""The most characters of a message that may be nothing but a yes or no."""
_COMMANDS: Final[Mapping[str, bool]] = {"/approve": True, "/reject": False}
"""What the agent says to answer a question with that is not the last one, and which answer that is."""
_READ_ALL: Final = frozenset(
    {
        *("ver todo", "verlo todo", "ver el resto", "ver entero", "verlo entero", "ver completo", "quiero ver todo"),
        *("quiero verlo todo", "muestralo todo", "mostrar todo", "leer todo", "leerlo todo", "mostralo todo"),
        *("see all", "see it all", "see everything", "see all of it", "see the rest", "show all", "show it all"),
        *("show me all", "show me all of it", "show everything", "show me everything", "read all", "let me see all"),
    }
)
"""What a person writes to read all of a question of which a part is left out, folded. It changes nothing."""
_POLITE: Final = re.compile(r"^(?:please|por favor)\b|\b(?:please|por favor)$")


class TurnState(StrEnum):
    """Where a turn is."""

    OPEN = "open"
    GIVEN = "given"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as the workers need it."""

    conversation_id: str
    channel: str
    address: Address
    subject: str
    """Whom the agent serves: the person's own id here, which no change of their number alters."""
    thread_id: str
    language: str
    event_after: int
    thread_us: int = 0
    """When the thread was begun whose events were read up to ``event_after``."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the agent is asked."""

    turn_id: str
    text: str
    shown: Sequence[tuple[str, str]]
    """The approvals whose buttons the person saw last, or which they quoted, each with the hash of its arguments."""
    approval_id: str = ""
    """Not empty if a button of this approval was pressed."""
    args_hash: str = ""
    approve: bool = False
    reads: str = ""
    """Not empty if the person wants to read all of this approval; ``args_hash`` is what they were shown of it."""
    stale: bool = False
    """True for a pressed button that is none of this conversation's any more: it answers nothing, and says nothing."""
    external_id: str = ""
    """The channel's id of the newest message in it."""
    media: Sequence[Media] = ()
    """The files that were sent with it, which are fetched when the agent is asked."""
    passed_on: str = ""
    """What others wrote that came with it, which is no part of the text."""
    starts: Sequence[int] = ()
    """Where in the text a further message begins, in code points."""
    quotes: bool = False
    """True if the person quoted the message that ``shown`` is from."""
    named: Sequence[tuple[str, str, int]] = ()
    """All waiting approvals that they have before them, in that order, with their numbers: words may say which."""
    also: Sequence[tuple[str, str]] = ()
    """The other approvals that a pressed button answers, each with the hash that was shown."""
    tries: int = 0


class Turns:
    """The store of turns, and of who works on which conversation."""

    def __init__(self, database: Database, owner: str, lease_us: int) -> None:
        """``owner`` is this process's own name; it keeps a conversation for ``lease_us`` without renewing."""
        self._database, self._owner, self.lease_us = database, owner, lease_us

    async def due(self, now_us: int, most: int, channels: Collection[str]) -> Sequence[str]:
        """Return the ids of conversations with messages for the agent that no process works on.

        Those of channels that are not configured wait.
        """
        query = (
            sa.select(conversations.c.conversation_id)
            .where(
                conversations.c.work_us <= now_us,
                conversations.c.turn_until_us <= now_us,
                conversations.c.channel.in_(list(channels)),
            )
            .order_by(conversations.c.work_us)
            .limit(most)
        )
        return await self._database.read(lambda connection: connection.execute(query).scalars().all())

    async def claim(self, conversation_id: str, now_us: int) -> Conversation | None:
        """Take a conversation for this process, None if another has it."""

        def work(connection: Connection) -> Conversation | None:
            taken = connection.execute(
                sa.update(conversations)
                .where(
                    conversations.c.conversation_id == conversation_id,
                    conversations.c.work_us <= now_us,
                    conversations.c.turn_until_us <= now_us,
                )
                .values(turn_owner=self._owner, turn_until_us=now_us + self.lease_us)
            )
            return _conversation(connection, conversation_id) if taken.rowcount else None

        return await self._database.write(work)

    async def untold(self, conversation: Conversation) -> int:
        """Return which change of the person's identity the agent was not told of, 0 if there is none."""
        return await lifts.untold(self._database, conversation.subject)

    async def note_told(self, conversation: Conversation, number: int) -> None:
        """Note that the agent was told of a change."""
        await lifts.note_told(self._database, conversation.subject, number)

    async def renew(self, conversation_id: str, now_us: int) -> None:
        """Keep a conversation for another while."""
        values = {"turn_until_us": now_us + self.lease_us}
        await self._database.write(
            lambda connection: connection.execute(
                sa.update(conversations).where(*self._own(conversation_id)).values(values)
            ).close()
        )

    async def release(self, conversation_id: str, next_us: int = 0) -> None:
        """Give a conversation back; its open turn is tried again at ``next_us``."""

        def work(connection: Connection) -> None:
            connection.execute(
                sa.update(conversations)
                .where(*self._own(conversation_id))
                .values(turn_owner="", turn_until_us=0, **({"work_us": next_us} if next_us else {}))
            )

        await self._database.write(work)

    async def next(self, conversation_id: str, now_us: int) -> Turn | None:
        """Return the turn to give to the agent now: an open one, or one made of the waiting messages.

        None if there is nothing to do now, and then the conversation is released.
        """

        def work(connection: Connection) -> Turn | None:
            locked = sa.select(conversations).where(*self._own(conversation_id)).with_for_update()
            row = connection.execute(locked).first()
            if row is None:  # another process took it for dead
                return None
            turn = _open(connection, conversation_id) or self._make(connection, conversation_id, now_us)
            if turn is None:
                values = {"turn_owner": "", "turn_until_us": 0, "work_us": NEVER_US}
                connection.execute(sa.update(conversations).where(*self._own(conversation_id)).values(values))
            return turn

        return await self._database.write(work)

    async def given(
        self, conversation_id: str, turn: Turn, state: TurnState, now_us: int, told: Sequence[Outgoing] = ()
    ) -> None:
        """Record that the agent has a turn, or refused it, and empty it; ``told`` is what the person is told then."""

        def work(connection: Connection) -> None:
            of_it = conversations.c.conversation_id == conversation_id
            connection.execute(sa.update(conversations).where(of_it).values(check_us=now_us))
            silent = connection.execute(sa.select(conversations.c.claimed).where(of_it)).scalar()
            if told and not silent:
                outgoing.add(connection, conversation_id, f"{state}:{turn.turn_id}", told, now_us)
            connection.execute(
                sa.update(turns)
                .where(turns.c.turn_id == turn.turn_id, turns.c.state == TurnState.OPEN)
                .values(state=state, body=b"")
            )

        await self._database.write(work)

    async def tried(self, turn: Turn) -> None:
        """Count a try, before the agent is asked: a later one knows that the agent may have the turn already."""

        def work(connection: Connection) -> None:
            of_it = turns.c.turn_id == turn.turn_id
            connection.execute(sa.update(turns).where(of_it).values(tries=turns.c.tries + 1))

        await self._database.write(work)

    def _own(self, conversation_id: str) -> tuple[sa.ColumnElement[bool], ...]:
        return conversations.c.conversation_id == conversation_id, conversations.c.turn_owner == self._owner

    def _make(self, connection: Connection, conversation_id: str, now_us: int) -> Turn | None:
        rows = _batch(_waiting(connection, conversation_id))
        if not rows:
            return None
        pressed = rows[0].kind == Kind.CHOICE
        if chosen := rows[0].option if pressed else _typed_option(connection, conversation_id, rows):
            turn = _of_option(connection, conversation_id, rows[0], chosen)
        elif (call := _wants_to_read(connection, conversation_id, rows)) is not None:
            turn = _to_read(rows[0], call.approval_id, call.args_hash)
        else:
            own, others = zip(*(texts.open_message(connection, row) for row in rows), strict=True)
            text, starts = _joined(own)
            room = max(_MAX_TEXT - len(text) - 1, 0)
            passed_on = "\n".join(filter(None, others))[:room]
            plain = not passed_on and all(row.kind not in (Kind.QUICK_REPLY, Kind.MEDIA) for row in rows)
            quoted = rows[0].quotes
            about = cards.before(connection, conversation_id, rows[0].sent_us, quoted) if plain else Before(())
            files = _files(connection, rows)
            turn = Turn(
                turn_id_of(rows[0]),
                text,
                [(call.approval_id, call.args_hash) for call in about.plainly()],
                external_id=rows[-1].external_id,
                media=files,
                passed_on=passed_on,
                starts=starts,
                quotes=bool(quoted),
                named=[(call.approval_id, call.args_hash, call.number) for call in about.named()],
            )
        body = {name: value for name, value in asdict(turn).items() if name not in _COLUMNS}
        connection.execute(
            insert(turns)
            .values(
                turn_id=turn.turn_id,
                conversation_id=conversation_id,
                body=texts.seal_body(connection, "turns", turn.turn_id, body),
                state=TurnState.OPEN,
                tries=0,
                create_us=now_us,
                approval_id=turn.approval_id,
            )
            .on_conflict_do_nothing()
        )
        which = (messages.c.message_id.in_([row.message_id for row in rows]),)
        texts.settle_messages(connection, which, state=MessageState.GIVEN, turn_id=turn.turn_id)
        return turn


class Threads:
    """The store of how far the events of each conversation's thread have been read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_due(self, now_us: int, next_us: int, most: int) -> Sequence[Conversation]:
        """Return conversations whose thread is to be looked at, and put off the next look so that no other does."""

        def work(connection: Connection) -> Sequence[Conversation]:
            query = (
                sa.select(conversations.c.conversation_id)
                .where(conversations.c.check_us <= now_us)
                .order_by(conversations.c.check_us)
                .limit(most)
                .with_for_update(skip_locked=True)
            )
            ids = connection.execute(query).scalars().all()
            if ids:
                of_them = conversations.c.conversation_id.in_(ids)
                connection.execute(sa.update(conversations).where(of_them).values(check_us=next_us))
            return [_conversation(connection, one) for one in ids]

        return await self._database.write(work)

    async def look_again(self, conversation_ids: Sequence[str], next_us: int) -> None:
        """Look at these threads again at that time."""
        of_them = conversations.c.conversation_id.in_(conversation_ids)
        change = sa.update(conversations).where(of_them).values(check_us=next_us)
        await self._database.write(lambda connection: connection.execute(change).close())

    async def told(
        self,
        conversation_id: str,
        sequence: int,
        said: Sequence[tuple[str, Sequence[Outgoing]]],
        now_us: int,
        *,
        claimed: bool | None = None,
    ) -> int:
        """Add what a thread's events say, up to a sequence, to the outbox; return how many messages were added.

        While somebody of the business has the conversation, only what they say is sent. ``claimed`` tells that
        somebody took it, or gave it back.
        """

        def work(connection: Connection) -> int:
            of_it = conversations.c.conversation_id == conversation_id
            row = connection.execute(sa.select(conversations).where(of_it).with_for_update()).one_or_none()
            if row is None:  # the person was erased meanwhile
                return 0
            if claimed is not None and claimed != row.claimed:
                connection.execute(sa.update(conversations).where(of_it).values(claimed=claimed))
                if claimed:
                    outgoing.silence(connection, conversation_id)
            silent = row.human_until_us > now_us or (row.claimed if claimed is None else claimed)
            added = 0
            for source, parts in said:
                spoken = source.startswith(outgoing.HUMAN) or not silent
                state = outgoing.State.PENDING if spoken else outgoing.State.SILENCED
                added += outgoing.add(connection, conversation_id, source, parts, now_us, state=state)
            if row.event_after < sequence:
                connection.execute(sa.update(conversations).where(of_it).values(event_after=sequence))
            return added

        return await self._database.write(work)

    async def restart(self, conversation_id: str, sequence: int, thread_us: int) -> None:
        """Go on from another sequence: events were removed, or the thread or the agent's database is another one."""
        of_it = conversations.c.conversation_id == conversation_id
        change = sa.update(conversations).where(of_it).values(event_after=sequence, thread_us=thread_us)
        await self._database.write(lambda connection: connection.execute(change).close())


def turn_id_of(row: Any) -> str:
    """Return the request id of the turn that a message begins. The agent's ids are short and of few characters."""
    named = f"{row.conversation_id} {row.external_id}"
    return f"gw-{hashlib.sha256(named.encode()).hexdigest()}"


def _conversation(connection: Connection, conversation_id: str) -> Conversation:
    query = sa.select(conversations).where(conversations.c.conversation_id == conversation_id)
    row = connection.execute(query).one()
    return Conversation(
        conversation_id,
        row.channel,
        Address(row.account, people.identities_of(connection, row.user_id)),
        people.subject_of(row.channel, row.user_id),
        conversation_id,
        row.language,
        row.event_after,
        row.thread_us,
    )


def _open(connection: Connection, conversation_id: str) -> Turn | None:
    query = (
        sa.select(turns)
        .where(turns.c.conversation_id == conversation_id, turns.c.state == TurnState.OPEN)
        .order_by(turns.c.create_us)
        .limit(1)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    body = texts.open_body(connection, "turns", row.turn_id, row.body)
    if not body:  # nothing can be given of it
        of_it = turns.c.turn_id == row.turn_id
        connection.execute(sa.update(turns).where(of_it).values(state=TurnState.REFUSED, body=b""))
        return _open(connection, conversation_id)
    body["shown"] = [(one[0], one[1]) for one in body["shown"]]
    body["named"] = [(one[0], one[1], one[2]) for one in body.get("named", ())]
    body["also"] = tuple((one[0], one[1]) for one in body.get("also", ()))
    body["media"] = [Media(*one) for one in body.get("media", ())]
    if "passed_on" not in body and not row.approval_id:  # written before it was stored who wrote the text
        body |= {"text": "", "passed_on": body["text"], "shown": ()}
    return Turn(row.turn_id, tries=row.tries, **(body | {"approval_id": row.approval_id}))


def _waiting(connection: Connection, conversation_id: str) -> Sequence[sa.Row[Any]]:
    query = (
        sa.select(messages)
        .where(messages.c.conversation_id == conversation_id, messages.c.state == MessageState.WAITING)
        .order_by(messages.c.sent_us, messages.c.position)
        .limit(_MAX_TOGETHER)
    )
    return connection.execute(query).all()


def _batch(rows: Sequence[sa.Row[Any]]) -> Sequence[sa.Row[Any]]:
    """Return the messages of one turn: those a person wrote in a row, with as many files as the agent takes at once.

    A pressed button is a turn of its own, and so is a message that quotes another: it is about that one alone.
    """
    files = 0
    for place, row in enumerate(rows):
        files += row.kind == Kind.MEDIA
        alone = row.kind == Kind.CHOICE or row.quotes
        if alone or files > _MAX_FILES:
            return rows[: max(place, 1)]
    return rows


def _joined(parts: Sequence[str]) -> tuple[str, list[int]]:
    """Return messages as one text, and where in it each but the first begins."""
    text, starts = "", list[int]()
    for part in filter(None, parts):
        starts.append(len(text) + 1)
        text = f"{text}\n{part}" if text else part
    return text[:_MAX_TEXT], [start for start in starts[1:] if start < _MAX_TEXT]


def _files(connection: Connection, rows: Sequence[sa.Row[Any]]) -> Sequence[Media]:
    """Return the files of messages, in their order."""
    ids = [row.message_id for row in rows if row.kind == Kind.MEDIA]
    found = texts.files_of(connection, ids)
    return [found[one] for one in ids if one in found and found[one].kind in FETCHED]


def _typed_option(connection: Connection, conversation_id: str, rows: Sequence[sa.Row[Any]]) -> str:
    """Return the option a person chose by typing its number, a command or a plain yes or no, '' if they did not."""
    if len(rows) > 1 or rows[0].kind == Kind.MEDIA:
        return ""
    row = rows[0]
    own, others = texts.open_message(connection, row)
    text = own.strip().rstrip(".")
    about = cards.before(connection, conversation_id, row.sent_us, row.quotes)
    newest = about.newest
    if row.kind == Kind.TEXT and not others:
        if (command := text.lower()) in _COMMANDS:
            approve = _COMMANDS[command]
            return cards.option_for(connection, about.only(approve=approve), approve=approve)
        reviews = newest is not None and any(call.submits_form for call in newest.calls)
        cancels = reviews and read_stop(text) == "stop"
        if len(text) <= _LONGEST_ANSWER and not cancels and (answer := read_answer(text)) != "unclear":
            since = newest is not None and _said_since(connection, conversation_id, row, newest.since)
            meant = about.meant(approve=answer == "yes", said_since=since)
            return cards.option_for(connection, meant, approve=answer == "yes")
    is_number = text.isascii() and text.isdigit() and len(text) <= 2  # noqa: PLR2004 - no list is longer
    shows = about.choice(int(text)) if is_number else None
    return option_id(shows.key, int(text) - 1) if shows is not None else ""


def _wants_to_read(connection: Connection, conversation_id: str, rows: Sequence[sa.Row[Any]]) -> ShownCall | None:
    """Return the call that a person wants to read all of, None if that is not what they wrote, or there is none."""
    if len(rows) > 1 or rows[0].kind != Kind.TEXT:
        return None
    own, others = texts.open_message(connection, rows[0])
    if others or len(own) > _LONGEST_ANSWER or _plain(own) not in _READ_ALL:
        return None
    return cards.before(connection, conversation_id, rows[0].sent_us, rows[0].quotes).to_read()


def _plain(text: str) -> str:
    """Return words without marks and courtesy, folded."""
    words = " ".join("".join(one if one.isalnum() else " " for one in fold(text)).split())
    return _POLITE.sub("", words).strip()


def _said_since(connection: Connection, conversation_id: str, row: sa.Row[Any], since_us: float) -> bool:
    """Return True if the person wrote anything before a message that they wrote after a time."""
    said = sa.select(messages.c.message_id).where(
        messages.c.conversation_id == conversation_id,
        messages.c.position < row.position,
        messages.c.receive_us > since_us,  # both are times of this clock; those of a channel are whole seconds
    )
    return connection.execute(said.limit(1)).first() is not None


def _moved_on(connection: Connection, row: sa.Row[Any], outbox_id: str) -> bool:
    """Return True if anything was said in a conversation between a message that was sent and one that was received."""
    asked = connection.execute(sa.select(outbox).where(outbox.c.outbox_id == outbox_id)).one()
    later = sa.select(outbox.c.outbox_id).where(
        outbox.c.conversation_id == asked.conversation_id, outbox.c.position > asked.position
    )
    if connection.execute(later.limit(1)).first() is not None:
        return True
    return _said_since(connection, asked.conversation_id, row, asked.create_us)


def _to_read(row: sa.Row[Any], approval_id: str, args_hash: str) -> Turn:
    """Return the turn of a wish to read all of an approval."""
    return Turn(turn_id_of(row), "", (), reads=approval_id, args_hash=args_hash, external_id=row.external_id)


def _of_option(connection: Connection, conversation_id: str, row: sa.Row[Any], chosen: str) -> Turn:
    """Return the turn of an option.

    One that is none of this conversation's, or whose message was removed or not sent whole, is stale: its title, a
    plain yes perhaps, was an answer to that message and to nothing else. One that says words is stale, too, once either
    side said more: the words would answer the question that is asked now.
    """
    outbox_id, number = option_of(chosen) or ("", 0)
    does = cards.pressed(connection, conversation_id, outbox_id, number)
    turn_id, external_id = turn_id_of(row), row.external_id
    if not does or ("say" in does and _moved_on(connection, row, outbox_id)):
        return Turn(turn_id, "", (), stale=True, external_id=external_id)
    if approval_id := str(does.get("reads", "")):
        return _to_read(row, approval_id, str(does["args_hash"]))
    if approval_id := str(does.get("approval", "")):
        return Turn(
            turn_id,
            "",
            (),
            approval_id,
            str(does["args_hash"]),
            bool(does["approve"]),
            external_id=external_id,
            also=tuple((str(name), str(args_hash)) for name, args_hash in does.get("also", ())),
        )
    return Turn(turn_id, str(does["say"]), (), external_id=external_id)

"""What a person has before them to answer: the messages they were sent, newest first, and the cards among them.

A card is the message with the buttons of one approval. No yes counts on one that was not sent whole, and no word that
was written before the card could be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import Option, Outgoing, option_id
from phylactery_gateway.channels.port import SECOND_US
from phylactery_gateway.store import outbox as outgoing
from phylactery_gateway.tables import outbox

_MOST_SHOWN: Final = 20
"""As many approvals as a message to the agent may name."""
_LAST_ROWS: Final = 60
_READING_US: Final = SECOND_US
"""Nobody answers what they have had before them for less than this. A channel's times are whole seconds besides."""
_SIGNS: Final[Mapping[str, bool]] = {"\U0001f44d": True, "\U0001f44e": False}
"""The thumbs up and down, and which answer each is."""
_TONES: Final = re.compile("[\U0001f3fb-\U0001f3ff\ufe0e\ufe0f]")

Shown = tuple[str, str]
"""An approval, and the hash of its arguments."""


class Before(NamedTuple):
    """A message that a person had before them."""

    outbox_id: str
    source: str
    """The event it says, without the number of the part."""
    message: Outgoing
    """Without its texts once it was delivered."""
    whole: bool
    """True if all earlier parts of it were sent, too."""
    sent_us: int
    """When it was sent, 0 if it was not."""
    numbered: bool = False
    """True if its options can be chosen by the numbers that stand in its text."""

    @property
    def card(self) -> Shown | None:
        """The approval that a yes to it would answer."""
        does = next((one.does for one in self.message.options if one.does.get("approve")), None)
        return (str(does["approval"]), str(does["args_hash"])) if does is not None and self.whole else None

    @property
    def approval_id(self) -> str:
        """The approval that one of its buttons answers, '' if none does."""
        return next((str(one.does["approval"]) for one in self.message.options if "approval" in one.does), "")

    @property
    def submits_form(self) -> bool:
        """True if it is the review of a form: words that cancel are for the form, and no answer to the question."""
        return any(one.does.get("form") for one in self.message.options)

    def option(self, wanted: bool) -> str:
        """Return the id of the option that says yes, or no, to an approval; '' if it has none."""
        found = (at for at, one in enumerate(self.message.options) if one.does.get("approve") is wanted)
        at = next(found, None)
        return "" if at is None or (wanted and not self.whole) else option_id(self.outbox_id, at)


def before(connection: Connection, conversation_id: str, written_us: int, quotes: str = "") -> Sequence[Before]:
    """Return what a text is about, newest first: the message that it quotes, else what the person had before them."""
    of_it = (outbox.c.conversation_id == conversation_id, outbox.c.state == outgoing.State.SENT)
    query = sa.select(outbox).where(*of_it)
    if quotes:
        query = query.where(outbox.c.external_id == quotes)
    else:
        query = query.where(outbox.c.sent_us.between(1, written_us - _READING_US))
    rows = connection.execute(query.order_by(outbox.c.position.desc()).limit(1 if quotes else _LAST_ROWS)).all()
    return [_before(connection, row) for row in rows]


def find(connection: Connection, conversation_id: str, outbox_id: str) -> Before | None:
    """Return a message of a conversation, sent or not, None if there is none."""
    query = sa.select(outbox).where(outbox.c.outbox_id == outbox_id, outbox.c.conversation_id == conversation_id)
    row = connection.execute(query).first()
    return None if row is None else _before(connection, row)


def shown(about: Sequence[Before]) -> Sequence[Shown]:
    """Return the approvals that a plain yes answers: those of the newest event, if the newest message is a card."""
    found: list[Shown] = []
    for one in about:
        if one.source != about[0].source:
            break
        if one.card is not None:
            found.append(one.card)
        elif not found or one.message.options:  # the newest is no card, or it is one that cannot be said yes to
            return ()
    return found[:_MOST_SHOWN]


def typed_number(about: Sequence[Before], number: int) -> str:
    """Return the option that a typed number chooses, '' if none: of the newest message, if that shows numbers.

    No number answers an approval: it may be the answer to a question that was asked before the card.
    """
    newest = about[0] if about else None
    if newest is None or not newest.numbered or not 0 < number <= len(newest.message.options):
        return ""
    return "" if _is_approval(newest.message.options[number - 1]) else option_id(newest.outbox_id, number - 1)


def answered_by_sign(connection: Connection, conversation_id: str, on: str, sign: str) -> str | None:
    """Return the option that an emoji on a message chooses, '' if it chooses none, None if the message asks nothing.

    A thumb answers exactly the card it is on, unless that is of high risk, or from before its risk was noted. An emoji
    that was taken away says nothing.
    """
    about = before(connection, conversation_id, 0, on) if on and sign else ()
    if not about or not any(map(_is_approval, about[0].message.options)):
        return None
    wanted = _SIGNS.get(_TONES.sub("", sign))
    if wanted is None or any(one.does.get("high_risk") is not False for one in about[0].message.options):
        return ""
    return about[0].option(wanted)


def _is_approval(option: Option) -> bool:
    return "approval" in option.does


def _before(connection: Connection, row: sa.Row[Any]) -> Before:
    body, source = outgoing.read(connection, row), row.source.rpartition(":")[0]
    message = Outgoing.read(body)
    if not message.options:
        return Before(row.outbox_id, source, message, whole=True, sent_us=row.sent_us)
    missing = sa.select(outbox.c.outbox_id).where(
        outbox.c.conversation_id == row.conversation_id,
        outbox.c.source.startswith(f"{source}:", autoescape=True),
        outbox.c.position < row.position,
        outbox.c.state != outgoing.State.SENT,
    )
    whole = connection.execute(missing.limit(1)).first() is None
    numbered = body.get(outgoing.NUMBERED, message.is_numbered)
    return Before(row.outbox_id, source, message, whole=whole, sent_us=row.sent_us, numbered=numbered)

"""Coalescing of messages (on_busy COALESCE): the claim of a message includes those behind it that may join it.

This is decided by the claim, in its transaction, so a message is served once, alone or with others, despite crashes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query
from sqlalchemy.engine import Connection

from phylactery_agent.rules.intents import parse_reply
from phylactery_agent.runtime.intake.authorship import said_together
from phylactery_agent.runtime.intake.rows import turn_of
from phylactery_agent.runtime.intake.waiting import passes_by
from phylactery_agent.runtime.storage.records import StoredTurn
from phylactery_agent.runtime.storage.schema import INBOX

MAX_TEXT: Final = 20_000
"""Maximum length of all texts together, in characters: that of a single message."""

_BEHIND = Query(
    sa.select(INBOX)
    .where(
        INBOX.c.thread_key == sa.bindparam("of_thread"),
        INBOX.c.state == "waiting",
        INBOX.c.position > sa.bindparam("after"),
    )
    .order_by(INBOX.c.position)
)


def coalesce(connection: Connection, turn: StoredTurn, run_id: str, *, again: bool) -> StoredTurn:
    """Return the turn with the words of all turns answered with it, which its first claim selects."""
    behind_it = {"of_thread": turn.thread_key, "after": turn.position}
    waiting = [turn_of(row) for row in _BEHIND.all(connection, behind_it)]
    behind = [one for one in waiting if one.lead_turn == turn.turn_id] if again else _wanted(turn, waiting)
    if not behind:
        return turn
    ids = tuple(one.turn_id for one in behind)
    if not again:
        connection.execute(
            sa.update(INBOX).where(INBOX.c.turn_id.in_(ids)).values(lead_turn=turn.turn_id, run_id=run_id)
        )
    return as_one((turn, *behind))


def as_one(parts: tuple[StoredTurn, ...]) -> StoredTurn:
    """Merge several turns into the first, combining their words and flags."""
    language = next((one.language for one in reversed(parts) if one.language), "")
    return replace(
        parts[0],
        text=_text(parts),
        language=language,
        joined=tuple(one.turn_id for one in parts[1:]),
        parts=parts,
        findings=_findings(parts),
        do_not_store=any(one.do_not_store for one in parts),
        attachments=tuple(one for part in parts for one in part.attachments),
        others="\n".join(part.others for part in parts if part.others),
        sender_phone=next((part.sender_phone for part in reversed(parts) if part.sender_phone), ""),
        message_starts=said_together([(part.text, part) for part in parts]).starts,
    )


def _wanted(turn: StoredTurn, waiting: Sequence[StoredTurn]) -> list[StoredTurn]:
    """Return the messages directly behind a turn that ask to be coalesced and can be."""
    found: list[StoredTurn] = []
    for one in waiting:
        if one.on_busy != "coalesce" or passes_by(turn) or passes_by(one) or not _fit((turn, *found, one)):
            break
        found.append(one)
    return found


def _fit(turns: tuple[StoredTurn, ...]) -> bool:
    """Return True if these may be merged: messages of one credential, not approval replies, and not too long."""
    first = turns[0]
    return (
        all(turn.kind == "message" and parse_reply(turn.text) is None for turn in turns)
        and all((turn.level, turn.credential_hash) == (first.level, first.credential_hash) for turn in turns)
        and all(turn.over_share == first.over_share for turn in turns)
        and all(turn.allowed_tools == first.allowed_tools for turn in turns)
        and len(_text(turns)) <= MAX_TEXT
        and parse_reply(_text(turns)) is None
    )


def _text(turns: tuple[StoredTurn, ...]) -> str:
    said = [turn.text for turn in turns if not turn.wordless]
    return "\n".join(said or [turns[0].text])


def _findings(turns: tuple[StoredTurn, ...]) -> str:
    """Return the findings of all turns; empty, meaning not inspected, if any of them was not inspected."""
    if not all(turn.findings for turn in turns):
        return ""
    return json.dumps(sorted({kind for turn in turns for kind in json.loads(turn.findings)}))

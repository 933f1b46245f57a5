"""Changes that a message makes to earlier requests in its thread.

Examples are "no, I meant b.txt", "and c.txt too", "do it again" and "never mind". Only the agent's own inbox determines
what came before, and a thread belongs to one user, so it contains no other user's words. The result is used for
planning only: RiskGate receives the task that the new words continue, and combines them itself with the words it
recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_understanding.amendment import amended, may_amend, repeats
from phylactery_understanding.request import Request, parse
from phylactery_understanding.retraction import read_retraction

from phylactery_agent.rules.intents import parse_reply, talk_kind
from phylactery_agent.rules.planner import read_aside
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.storage.schema import INBOX, to_text

MAX_CHANGE_US: Final = 3_600 * MICROSECONDS
"""The longest time after its answer at which a request can be changed, in microseconds."""
_LONGEST: Final = 400
"""Maximum length, in characters, of a message that may change another."""
_LONGEST_EARLIER: Final = 4_000
_MOST: Final = 8
"""Maximum number of messages in a chain in which each may change the one before it."""
_LOOKED_AT: Final = 16
"""Maximum number of messages searched for that chain: small talk and approval replies come in between."""

_BEFORE = Query(
    sa.select(
        INBOX.c.turn_id,
        INBOX.c.run_id,
        INBOX.c.task_id,
        INBOX.c.kind,
        INBOX.c.text,
        INBOX.c.lead_turn,
        INBOX.c.do_not_store,
        INBOX.c.handled_us,
    )
    .where(
        INBOX.c.thread_key == sa.bindparam("of_thread"),
        INBOX.c.position < sa.bindparam("before"),
        INBOX.c.state == "handled",
    )
    .order_by(INBOX.c.position.desc())
    .limit(_LOOKED_AT)
)


@dataclass(frozen=True, slots=True)
class ThreadChange:
    """The change that a message makes.

    meant is the resulting request, or empty if there is none; takes_back means that the message retracts the earlier
    request. task_id is the RiskGate task that its words continue, and run_id is that task's run.
    """

    meant: str = ""
    takes_back: bool = False
    task_id: str = ""
    run_id: str = ""


NO_CHANGE: Final = ThreadChange()


@dataclass(frozen=True, slots=True)
class _Said:
    """One earlier message."""

    text: str
    task_id: str
    run_id: str


class ThreadChanges:
    """Detection of the changes that messages make."""

    def __init__(self, database: Database, clock: Clock, *, seconds: int) -> None:
        """Take the database; seconds is how long after its answer a request can be changed, 0 for never."""
        self._database, self._clock, self._window_us = database, clock, seconds * MICROSECONDS

    async def of(self, claim: Claim) -> ThreadChange:
        """Return what a claimed message changes. Only a message that may change another costs a database read."""
        turn = claim.turn
        if not self._window_us or turn.kind != "message" or turn.do_not_store or len(turn.text) > _LONGEST:
            return NO_CHANGE
        if parse_reply(turn.text) is not None:
            return NO_CHANGE
        later = parse(turn.text)
        changes, takes_back = may_amend(later), read_retraction(turn.text) is not None
        if not changes and not takes_back:
            return NO_CHANGE
        earlier = await self._earlier(claim)
        if not earlier:
            return NO_CHANGE
        lane = (turn.owner.tenant, turn.owner.user_id)
        texts = [one.text for one in earlier]
        meant = await read_aside(lane, "\n".join(texts), lambda: _meant(texts, later)) if changes else ""
        if not meant and not takes_back:
            return NO_CHANGE
        newest = earlier[-1]
        return ThreadChange(meant, takes_back and not meant, newest.task_id, newest.run_id)

    async def _earlier(self, claim: Claim) -> Sequence[_Said]:
        """Return the user's earlier requests, oldest first: a bounded number, back to the first that does not count."""
        values = {"of_thread": claim.lease.thread_key, "before": claim.turn.position}
        rows = await self._database.read_quickly(lambda connection: _BEFORE.all(connection, values), one=True)
        now_us, found = self._clock.now_us(), list[_Said]()
        for row in rows:
            if abs(now_us - row.handled_us) > self._window_us or row.do_not_store or row.lead_turn:
                break  # too old, not stored, or only a part of a request
            text = to_text(row.text)
            if row.kind != "message" or talk_kind(text) is not None or parse_reply(text) is not None:
                continue
            if len(text) > _LONGEST_EARLIER or len(found) == _MOST:
                break
            found.append(_Said(text, row.task_id, row.run_id))
        return found[::-1]


def _meant(texts: Sequence[str], later: Request) -> str:
    """Return the request that results from applying a message to the earlier ones, or an empty string."""
    known = parse(texts[0])
    for text in texts[1:]:
        own = parse(text)
        amends = amended(known, own)
        known = amends.request if amends is not None else known if repeats(own) else own
    amends = amended(known, later)
    if amends is not None:
        return amends.request.text
    return known.text if repeats(later) and known.asks else ""

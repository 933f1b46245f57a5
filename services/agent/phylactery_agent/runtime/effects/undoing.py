"""What of a thread's effects can be taken back, and the line that tells those that ran without a question.

Both stand in the ledger's rows, so they are as durable as the effects themselves. ``undo`` of a row is

- kept: an effect of low stakes whose tool can restore what was there before;
- none: one of low stakes whose tool keeps no earlier state, or an undo of what had low stakes;
- undoing, undone, left:CODE or failed:CODE once an undo, which ``undone_by`` names by its effect key, has claimed it.

``told`` is owed from the start of an effect that nothing but its low stakes allows, and told once the line is in the
thread's log. A line that cannot be told now, because a person has the thread, is told with the next reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.auth.levels import GUEST
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record, RowUpdate
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.crypto import sha256
from sqlalchemy.engine import Connection

from phylactery_agent.i18n.texts import NAMED_EFFECTS, listed, say, what_was_done
from phylactery_agent.ports import DoneEffect, EffectState, Language, ReversalResult
from phylactery_agent.runtime.effects.outbox import queue_told
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.storage.schema import INBOX, IS_KEPT, IS_OWED, TOOL_CALLS, to_text
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import UNDO_WRITE, WRITE_FILE

KEPT, NONE, UNDOING, UNDONE = "kept", "none", "undoing", "undone"
OWED, TOLD = "owed", "told"
DEFAULT_DAYS: Final = 30
_DAY_US: Final = 86_400 * MICROSECONDS
_LATER: Final = frozenset({"MEMORY_UNAVAILABLE", "IO_ERROR", "NOT_NOTED", "TIMEOUT", "TOOL_FAILED"})
"""Reasons that may be gone the next time, so the effect can still be taken back then."""

_SET = RowUpdate(TOOL_CALLS, "run_id", "tool_call_id")
_OF_THREAD = (
    sa.select(TOOL_CALLS, INBOX.c.position)
    .join(INBOX, INBOX.c.turn_id == TOOL_CALLS.c.turn_id)
    .where(
        INBOX.c.thread_key == sa.bindparam("of_thread"),
        TOOL_CALLS.c.tenant == sa.bindparam("of_tenant"),
        TOOL_CALLS.c.user_id == sa.bindparam("of_user"),
    )
)
_DONE = sa.and_(TOOL_CALLS.c.state == EffectState.FINISHED, TOOL_CALLS.c.status != "error")
_BACKWARDS = (INBOX.c.position.desc(), TOOL_CALLS.c.ordinal.desc())
_NEWEST = Query(
    _OF_THREAD.where(IS_KEPT, _DONE, TOOL_CALLS.c.created_us >= sa.bindparam("since_us")).order_by(*_BACKWARDS).limit(1)
)
_OTHERS_SINCE = Query(
    _OF_THREAD.where(
        _DONE,
        TOOL_CALLS.c.undo == "",
        INBOX.c.position > sa.bindparam("since"),
    ).order_by(*_BACKWARDS)
)
_IN_TURN = Query(
    _OF_THREAD.where(
        _DONE,
        TOOL_CALLS.c.turn_id == sa.bindparam("of_turn"),
        TOOL_CALLS.c.tool != UNDO_WRITE.name,
        sa.or_(TOOL_CALLS.c.undo == KEPT, TOOL_CALLS.c.undo == NONE),
    ).order_by(*_BACKWARDS)
)
_TAKEN = Query(
    _OF_THREAD.where(TOOL_CALLS.c.undone_by == sa.bindparam("of_key"), TOOL_CALLS.c.undone_by != "").order_by(
        *_BACKWARDS
    )
)
_OWED_SO_FAR = Query(_OF_THREAD.where(IS_OWED))
_OWED = Query(
    _OF_THREAD.where(
        IS_OWED,
        sa.or_(TOOL_CALLS.c.state == EffectState.FINISHED, TOOL_CALLS.c.state == EffectState.IN_DOUBT),
        TOOL_CALLS.c.status != "error",
    ).order_by(INBOX.c.position, TOOL_CALLS.c.ordinal)
)


@dataclass(frozen=True, slots=True)
class Undoables:
    """What all turns' undoing shares: the store, and for how many days an effect can be taken back."""

    database: Database
    clock: Clock
    tools: ToolRegistry
    days: int = DEFAULT_DAYS

    async def target_of(self, lease: Lease) -> str:
        """Return a hash of what an undo in a thread would take back now, or an empty string if there is nothing."""
        return await self.database.read_quickly(lambda connection: _hash_of(self.target(connection, lease)))

    async def tools_of(self, lease: Lease) -> tuple[str, ...]:
        """Return the tool of each effect that an undo in a thread would take back now."""
        return await self.database.read_quickly(
            lambda connection: tuple(row.tool for row in self.target(connection, lease))
        )

    def target(self, connection: Connection, lease: Lease) -> Sequence[Record]:
        """Return the effects of the thread's last turn that had any of low stakes, newest first.

        There are none if something else that tools could take back was done since: the person means what they saw last.
        """
        values = _of_thread(lease)
        since_us = self.clock.now_us() - self.days * _DAY_US
        newest = _NEWEST.one(connection, {**values, "since_us": since_us})
        if newest is None:
            return ()
        for other in _OTHERS_SINCE.all(connection, {**values, "since": newest.position}):
            if other.tool == UNDO_WRITE.name or is_reversible(other.tool, self.tools):
                return ()
        return _IN_TURN.all(connection, {**values, "of_turn": newest.turn_id})


class TurnUndoing:
    """Implementation of ports.Undoing for one turn, under its lease."""

    def __init__(self, shared: Undoables, writes: TurnWrites) -> None:
        self._shared, self._writes, self._lease = shared, writes, writes.lease

    async def target(self) -> str:
        """Return a hash of what an undo would take back now; see ports.Undoing."""
        return await self._shared.target_of(self._lease)

    async def take(self, target: str, *, key: str) -> Sequence[DoneEffect]:
        """Claim what a target names, once per key; see ports.Undoing."""

        def work(connection: Connection, now: int) -> Sequence[DoneEffect]:
            if taken := _taken(connection, self._lease, key):
                return taken
            rows = self._shared.target(connection, self._lease)
            if not rows or _hash_of(rows) != target:
                return ()
            for row in rows:
                undo = UNDOING if row.undo == KEPT else row.undo
                _SET.later(connection, row.run_id, row.tool_call_id, undo=undo, undone_by=key, updated_us=now)
            self._is_no_other(connection, key)
            return [_effect(row) for row in rows]

        effects = await self._writes.write(work)
        reach("agent.undo.taken")
        return effects

    async def taken(self, *, key: str) -> Sequence[DoneEffect]:
        """Return what the undo of this key has claimed, newest first."""
        return await self._shared.database.read_quickly(
            lambda connection: _taken(connection, self._lease, key), one=True
        )

    async def settle(self, effect: DoneEffect, result: ReversalResult, code: str = "") -> None:
        """Commit what became of one claimed effect."""
        undo = UNDONE if result == "UNDONE" else f"{result.lower()}:{code}"[:64]
        if result == "LEFT" and code in _LATER:
            undo = KEPT

        def work(connection: Connection, now: int) -> None:
            this = TOOL_CALLS.c.effect_key == effect.effect_key, TOOL_CALLS.c.execution_id == effect.execution_id
            mine = TOOL_CALLS.c.tenant == self._lease.owner.tenant, TOOL_CALLS.c.user_id == self._lease.owner.user_id
            connection.execute(sa.update(TOOL_CALLS).where(*mine, *this).values(undo=undo, updated_us=now))

        await self._writes.write(work)
        reach("agent.undo.settled")

    async def note_undone(self, effect_key: str, *, key: str) -> None:
        """Note that the undo of this key took back one effect without claiming it; see ports.Undoing."""

        def work(connection: Connection, now: int) -> None:
            owner, values = self._lease.owner, {"undo": UNDONE, "updated_us": now}
            this = TOOL_CALLS.c.tenant == owner.tenant, TOOL_CALLS.c.user_id == owner.user_id
            kept = sa.update(TOOL_CALLS).where(*this, TOOL_CALLS.c.effect_key == effect_key, IS_KEPT)
            if connection.execute(kept.values(values)).rowcount:
                self._is_no_other(connection, key)

        await self._writes.write(work)

    def _is_no_other(self, connection: Connection, key: str) -> None:
        """Note that the undo of a key is nothing which stands between an undo and what was done before."""
        this = TOOL_CALLS.c.run_id == self._lease.run_id, TOOL_CALLS.c.effect_key == key
        connection.execute(sa.update(TOOL_CALLS).where(*this).values(undo=NONE))

    async def name_object(self, key: str, object_id: str) -> None:
        """Note what an effect that can be taken back has made, before its result is known."""

        def work(connection: Connection, _now: int) -> None:
            this = TOOL_CALLS.c.run_id == self._lease.run_id, TOOL_CALLS.c.effect_key == key
            connection.execute(sa.update(TOOL_CALLS).where(*this, IS_KEPT).values(object_id=object_id))

        await self._writes.write(work)


def is_reversible(tool: str, tools: ToolRegistry) -> bool:
    """Return True if a tool keeps what its effect replaces, so that it can be restored."""
    spec = tools.get(tool)
    return spec is not None and spec.contract.reversible


def taken_back(connection: Connection, lease: Lease, key: str, *, ended: bool) -> list[dict[str, str]]:
    """Return what the undo of a key has come to, as RiskGate is told: doubt about an effect counts as a failure.

    ``ended`` says that the undo has an outcome, so that what it had claimed and not settled is free again.
    """
    told = []
    for row in _TAKEN.all(connection, {**_of_thread(lease), "of_key": key}) if key else ():
        effect = _effect(row)
        result, code = effect.result or ("LEFT" if ended else "FAILED"), effect.code
        if row.undo == UNDOING:
            code = "NOT_BEGUN" if ended else "IN_DOUBT"
            _SET.later(connection, row.run_id, row.tool_call_id, undo=KEPT if ended else f"failed:{code}")
        told.append(
            {"execution_id": row.execution_id, "result": result, "error_code": "" if result == "UNDONE" else code}
        )
    return told


def names_of(connection: Connection, lease: Lease) -> Mapping[str, str] | None:
    """Return what the effects that the person is to be told of were done to, by their executions; None without any.

    It is read from their outputs, so before a run that ends forgets these, and includes effects whose outcome is still
    open: their run's end makes it known.
    """
    owed = _OWED_SO_FAR.all(connection, _of_thread(lease))
    return {row.execution_id: _name(row) for row in owed} if owed else None


def line_of(
    connection: Connection,
    lease: Lease,
    names: Mapping[str, str],
    language: Language,
    tools: ToolRegistry,
    *,
    level: str,
) -> tuple[str, list[Record]]:
    """Return the line that tells what ran in a thread without a question, and its rows; empty if nothing is owed.

    It promises an undo only if the person's ``level`` may ask for one.
    """
    rows = _OWED.all(connection, _of_thread(lease))
    if not rows:
        return "", []
    done = [row for row in rows if row.state == EffectState.FINISHED and row.undo not in {UNDOING, UNDONE}]
    doubted = [row for row in rows if row.state == EffectState.IN_DOUBT]
    said = []
    if done:
        may_undo = level != GUEST or UNDO_WRITE.name in tools.guest_tools
        back = [row for row in done if row.undo == KEPT and may_undo]
        key = "also_done" if len(back) == len(done) else "also_done_only"
        said.append(say(key, language, what=listed(_whats(done, names, language, tools), language), count=len(done)))
    if doubted:
        what = listed(_whats(doubted, names, language, tools), language)
        said.append(say("also_in_doubt", language, what=what))
    return " ".join(said), rows


def mark_told(connection: Connection, lease: Lease, rows: Sequence[Record], *, now_us: int) -> None:
    """Note that the line was told, in the transaction that tells it, and queue that RiskGate knows."""
    for row in rows:
        _SET.later(connection, row.run_id, row.tool_call_id, told=TOLD)
        queue_told(connection, lease, row.execution_id, now_us=now_us)


def _whats(rows: Sequence[Record], names: Mapping[str, str], language: Language, tools: ToolRegistry) -> Sequence[str]:
    """Return each effect in words: wrote to “a.txt”, set the reminder “call Ana”."""
    return list(
        dict.fromkeys(what_was_done(row.tool, names.get(row.execution_id, ""), language, tools) for row in rows)
    )


def _name(row: Record) -> str:
    output = "" if row.output is None else to_text(row.output)
    if row.tool == WRITE_FILE.name:
        return output
    if row.tool not in NAMED_EFFECTS or not output:
        return ""
    return str(json.loads(output).get("text", ""))


def _of_thread(lease: Lease) -> dict[str, Any]:
    return {"of_thread": lease.thread_key, "of_tenant": lease.owner.tenant, "of_user": lease.owner.user_id}


def _taken(connection: Connection, lease: Lease, key: str) -> Sequence[DoneEffect]:
    return [_effect(row) for row in _TAKEN.all(connection, {**_of_thread(lease), "of_key": key})]


def _hash_of(rows: Sequence[Record]) -> str:
    return sha256("\x1f".join(sorted(row.effect_key for row in rows))) if rows else ""


def _effect(row: Record) -> DoneEffect:
    word, _, code = row.undo.partition(":")
    results: Mapping[str, ReversalResult] = {UNDONE: "UNDONE", "left": "LEFT", "failed": "FAILED"}
    reversible = word != NONE
    result = results.get(word) if reversible else "LEFT"
    code = code if reversible else "NOT_REVERSIBLE"
    return DoneEffect(row.tool, row.effect_key, row.execution_id, row.object_id, result, code, reversible)

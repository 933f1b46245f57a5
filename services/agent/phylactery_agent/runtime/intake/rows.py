"""Conversion between inbox rows and values: turns, and the runs they open."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query, Record, RowInsert, Update
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection, Row

from phylactery_agent.runtime.runs.status import OPENED, RunStatus
from phylactery_agent.runtime.storage.records import APPROVALS_SOURCE, Incoming, Owner, StoredTurn
from phylactery_agent.runtime.storage.schema import INBOX, RUNS, THREADS, to_bytes, to_text

_BY_NAME = Query(
    sa.select(INBOX).where(
        INBOX.c.tenant == sa.bindparam("of_tenant"),
        INBOX.c.source == sa.bindparam("of_source"),
        INBOX.c.message_id == sa.bindparam("of_message"),
    )
)
_GIVEN_TO_RUN = ("run_id", "thread_key", "thread_id", "tenant", "user_id", "language", "turn_id")
_before = RUNS.alias()
_LANGUAGE_BEFORE = (
    sa.select(_before.c.language)
    .where(_before.c.thread_key == sa.bindparam("of_thread"))
    .order_by(_before.c.created_us.desc())
    .limit(1)
    .scalar_subquery()
)
_ADD_RUN = Update(
    sa.insert(RUNS).values(
        **{name: sa.bindparam(f"its_{name}") for name in _GIVEN_TO_RUN if name != "language"},
        # a conversation keeps the language of its last run until the person's words say otherwise
        language=sa.func.coalesce(sa.func.nullif(sa.bindparam("its_language"), ""), _LANGUAGE_BEFORE, ""),
        graph=sa.select(THREADS.c.graph).where(THREADS.c.thread_key == sa.bindparam("of_thread")).scalar_subquery(),
        status=OPENED,
        reason="",
        approval_id="",
        trace_id="",
        steps="[]",
        fence=0,
        attempt=0,
        lease_owner="",
        lease_until_us=0,
        created_us=sa.bindparam("now_us"),
        updated_us=sa.bindparam("now_us"),
    )
)
_ADD_TURN = RowInsert(INBOX, *(column.name for column in INBOX.columns if column.name != "task_id"))


def insert_run(connection: Connection, opening: Incoming | StoredTurn, now: int) -> str:
    """Insert the queued run that a message opens, and return its id."""
    run_id = new_id("run")
    thread_key, owner = opening.thread_key, opening.owner
    its = (run_id, thread_key, opening.thread_id, owner.tenant, owner.user_id, opening.language, opening.turn_id)
    given = {f"its_{name}": value for name, value in zip(_GIVEN_TO_RUN, its, strict=True)}
    _ADD_RUN.later(connection, {**given, "of_thread": thread_key, "now_us": now})
    return run_id


def insert_turn(
    connection: Connection,
    incoming: Incoming,
    now: int,
    *,
    position: int,
    source: str,
    approval_id: str,
    run_id: str,
) -> StoredTurn:
    """Insert a turn at its position in its thread, and return it."""
    turn = StoredTurn(
        turn_id=incoming.turn_id,
        owner=incoming.owner,
        source=source,
        body_hash=incoming.body_hash,
        thread_id=incoming.thread_id,
        position=position,
        handled=False,
        kind="approval_decided" if source == APPROVALS_SOURCE else "message",
        text=incoming.text,
        language=incoming.language,
        level=incoming.level,
        credential_hash=incoming.credential_hash,
        traceparent=incoming.traceparent,
        run_id=run_id,
        resumed=False,
        created_us=now,
        handled_us=0,
        run_status="",
        run_reason="",
        approval_id=approval_id,
        reply_id="",
        reply_text="",
        last_sequence=0,
        on_busy=incoming.on_busy,
        findings=incoming.findings,
        do_not_store=incoming.do_not_store,
        allowed_tools=tuple(incoming.allowed_tools),
        sealed_code=incoming.sealed_code,
        sealed_words=incoming.sealed_words,
    )
    _ADD_TURN.later(connection, [_row(turn, incoming.message_id)])
    return turn


def _row(turn: StoredTurn, message_id: str) -> tuple[Any, ...]:
    """Return a waiting turn as an inbox row, in the column order of _ADD_TURN."""
    return (
        turn.turn_id,
        turn.owner.tenant,
        turn.source,
        message_id,
        turn.body_hash,
        turn.owner.user_id,
        turn.thread_key,
        turn.thread_id,
        turn.position,
        "waiting",
        turn.kind,
        to_bytes(turn.text),
        turn.language,
        turn.sealed_code,
        turn.sealed_words,
        turn.findings,
        turn.do_not_store,
        json.dumps(turn.allowed_tools),
        turn.level,
        turn.credential_hash,
        turn.traceparent,
        turn.run_id,
        turn.resumed,
        turn.created_us,
        turn.handled_us,
        turn.run_status,
        turn.run_reason,
        turn.approval_id,
        turn.reply_id,
        to_bytes(turn.reply_text),
        turn.last_sequence,
        turn.on_busy,
        turn.lead_turn,
    )


def find_turn(connection: Connection, tenant: str, source: str, message_id: str) -> Record | None:
    """Return the row of a turn by the message id its source gave it, or None."""
    return _BY_NAME.one(connection, {"of_tenant": tenant, "of_source": source, "of_message": message_id})


def turn_of(row: Row[Any] | Record) -> StoredTurn:
    """Convert an inbox row to a StoredTurn."""
    return StoredTurn(
        turn_id=row.turn_id,
        owner=Owner(row.tenant, row.user_id),
        source=row.source,
        body_hash=row.body_hash,
        thread_id=row.thread_id,
        position=row.position,
        handled=row.state == "handled",
        kind=row.kind,
        text=to_text(row.text),
        language=row.language,
        level=row.level,
        credential_hash=row.credential_hash,
        traceparent=row.traceparent,
        run_id=row.run_id,
        resumed=bool(row.resumed),
        created_us=row.created_us,
        handled_us=row.handled_us,
        run_status=RunStatus(row.run_status) if row.run_status else "",
        run_reason=row.run_reason,
        approval_id=row.approval_id,
        reply_id=row.reply_id,
        reply_text=to_text(row.reply_text),
        last_sequence=row.last_sequence,
        on_busy=row.on_busy,
        lead_turn=row.lead_turn,
        findings=row.findings,
        do_not_store=bool(row.do_not_store),
        allowed_tools=tuple(json.loads(row.allowed_tools)),
        sealed_code=row.sealed_code,
        sealed_words=row.sealed_words,
    )

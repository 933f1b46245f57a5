"""Conversion between inbox rows and values: turns, and the runs they open."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.columns import BOOLEAN, JSON_TUPLE, Columns, Form, field_names
from phylactery_chassis.db.statements import Query, Record, RowInsert, Update
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection, Row

from phylactery_agent.runtime.runs.status import OPENED, RunStatus
from phylactery_agent.runtime.storage.records import APPROVALS_SOURCE, NO_WORDS, Incoming, Message, Owner, StoredTurn
from phylactery_agent.runtime.storage.schema import FORM_SESSIONS, INBOX, RUNS, TEXT, THREADS, to_bytes, to_text

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
FORM_GRAPH: Final = "form"
"""The graph that serves a message in a thread with an open form, whatever graph serves the thread otherwise."""
FORM_IS_OPEN = sa.exists().where(
    FORM_SESSIONS.c.thread_key == sa.bindparam("of_thread"), FORM_SESSIONS.c.ended_us == sa.literal_column("0")
)
"""Whether a form is open in the thread ``of_thread``."""
FORM_RUN = (
    sa.select(FORM_SESSIONS.c.run_id)
    .where(FORM_SESSIONS.c.thread_key == sa.bindparam("of_thread"), FORM_SESSIONS.c.ended_us == sa.literal_column("0"))
    .limit(1)
    .scalar_subquery()
)
"""The run that asks whether the open form of the thread ``of_thread`` is submitted, if one does or did."""
_ADD_RUN = Update(
    sa.insert(RUNS).values(
        **{name: sa.bindparam(f"its_{name}") for name in _GIVEN_TO_RUN if name != "language"},
        # a conversation keeps the language of its last run until the person's words say otherwise
        language=sa.func.coalesce(sa.func.nullif(sa.bindparam("its_language"), ""), _LANGUAGE_BEFORE, ""),
        graph=sa.case(
            (sa.or_(sa.bindparam("its_form") != "", FORM_IS_OPEN), FORM_GRAPH),
            else_=sa.select(THREADS.c.graph).where(THREADS.c.thread_key == sa.bindparam("of_thread")).scalar_subquery(),
        ),
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
_OF_MESSAGE = field_names(Message)
_TURN = Columns(
    StoredTurn,
    INBOX,
    forms={
        "text": TEXT,
        "reply_text": TEXT,
        "resumed": BOOLEAN,
        "do_not_store": BOOLEAN,
        "text_erased": BOOLEAN,
        "allowed_tools": JSON_TUPLE,
        "attachments": JSON_TUPLE,
        "others": Form(lambda data: to_text(data or b""), to_bytes),
        "sender_phone": Form(lambda data: to_text(data or b""), lambda text: to_bytes(text) if text else None),
        "message_starts": Form(lambda text: tuple(json.loads(text or "[]")), json.dumps),
        "run_status": Form(lambda status: RunStatus(status) if status else ""),
    },
    besides=("owner", "handled", "joined", "parts"),
)
_ADD_TURN = RowInsert(INBOX, "message_id", "tenant", "user_id", "thread_key", "state", *_TURN.names)


def insert_run(connection: Connection, opening: Incoming | StoredTurn, now: int) -> str:
    """Insert the queued run that a message opens, and return its id."""
    run_id = new_id("run")
    thread_key, owner = opening.thread_key, opening.owner
    its = (run_id, thread_key, opening.thread_id, owner.tenant, owner.user_id, opening.language, opening.turn_id)
    given = {f"its_{name}": value for name, value in zip(_GIVEN_TO_RUN, its, strict=True)}
    _ADD_RUN.later(connection, {**given, "its_form": opening.form, "of_thread": thread_key, "now_us": now})
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
        **{name: getattr(incoming, name) for name in _OF_MESSAGE},
        source=source,
        position=position,
        kind="approval_decided" if source == APPROVALS_SOURCE else "message",
        run_id=run_id,
        approval_id=approval_id,
        created_us=now,
    )
    owner = turn.owner
    more = (incoming.message_id, owner.tenant, owner.user_id, turn.thread_key, "waiting")
    _ADD_TURN.later(connection, [(*more, *_TURN.values(turn))])
    return turn


def find_turn(connection: Connection, tenant: str, source: str, message_id: str) -> Record | None:
    """Return the row of a turn by the message id its source gave it, or None."""
    return _BY_NAME.one(connection, {"of_tenant": tenant, "of_source": source, "of_message": message_id})


def turn_of(row: Row[Any] | Record) -> StoredTurn:
    """Convert an inbox row to a StoredTurn.

    Nobody knows who wrote the text of a row from before that was stored. Where RiskGate was not shown it yet as the
    person's words, it counts as others'.
    """
    turn = _TURN.read(row, owner=Owner(row.tenant, row.user_id), handled=row.state == "handled")
    unknown = row.message_starts is None and turn.kind == "message" and not turn.handled and not row.task_id
    return replace(turn, text=NO_WORDS, others=turn.text, sealed_words=None) if unknown else turn

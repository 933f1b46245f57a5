"""The agent's tables. Times are microseconds since the epoch; texts a person or a tool wrote are UTF-8 bytes.

They are bytes because PostgreSQL's text type cannot hold NUL, which both may contain. Whatever holds words of a person,
a tool, a model or a reply is a sealed column; docs/runtime.md says until when each is kept.
"""

from __future__ import annotations

import sqlalchemy as sa
from phylactery_chassis.db.columns import Form
from phylactery_chassis.db.sealed import SealedBytes, SealedText

from phylactery_agent.ports import EffectState
from phylactery_agent.runtime.runs.status import ACTIVE, SERVED

METADATA = sa.MetaData()

_NAME = sa.String(128)
_KEY = sa.String(64)
_WORD = sa.String(64)
_HASH = sa.String(71)

THREADS = sa.Table(
    "agent_threads",
    METADATA,
    sa.Column("thread_key", _KEY, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("last_sequence", sa.BigInteger, nullable=False),
    sa.Column("last_position", sa.BigInteger, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    sa.Column("graph", _WORD, nullable=False, server_default="secured"),
    sa.Column("first_sequence", sa.BigInteger, nullable=False, server_default="1"),
    sa.Column("handed_off", sa.Boolean, nullable=False, server_default=sa.false()),
)
sa.Index("agent_threads_by_user", THREADS.c.tenant, THREADS.c.user_id, THREADS.c.created_us, THREADS.c.thread_key)

RUNS = sa.Table(
    "agent_runs",
    METADATA,
    sa.Column("run_id", _NAME, primary_key=True),
    sa.Column("thread_key", _KEY, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("graph", _WORD, nullable=False),
    sa.Column("language", sa.String(2), nullable=False),
    sa.Column("status", _WORD, nullable=False),
    sa.Column("reason", _WORD, nullable=False),
    sa.Column("approval_id", _NAME, nullable=False),
    sa.Column("card", SealedText("agent_runs.card"), nullable=False, server_default="[]"),
    sa.Column("turn_id", _NAME, nullable=False),
    sa.Column("trace_id", sa.String(32), nullable=False),
    sa.Column("pathway", _WORD, nullable=False, server_default=""),
    sa.Column("steps", SealedText("agent_runs.steps"), nullable=False),
    sa.Column("fence", sa.BigInteger, nullable=False),
    sa.Column("attempt", sa.BigInteger, nullable=False),
    sa.Column("lease_owner", _NAME, nullable=False),
    sa.Column("lease_until_us", sa.BigInteger, nullable=False),
    sa.Column("graph_version", _WORD, nullable=False, server_default=""),
    sa.Column("cancel_us", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cancel_reason", _WORD, nullable=False, server_default=""),  # empty if the user cancelled the run
    sa.Column("model_calls", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("tokens", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("cost_micros", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("retry_of", _NAME, nullable=False, server_default=""),
    sa.Column("supersteps", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("tool_calls", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("due_us", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("active_us", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
)
_active = RUNS.c.status.in_(ACTIVE)
IS_ACTIVE = RUNS.c.status.in_([sa.literal_column(f"'{status}'") for status in ACTIVE])
"""The same condition with literal values, as in the index: with bound parameters the partial index is not used."""
sa.Index("agent_runs_active", RUNS.c.thread_key, sqlite_where=_active, postgresql_where=_active)
_served = RUNS.c.status.in_(SERVED)
sa.Index("agent_runs_one_served", RUNS.c.thread_key, unique=True, sqlite_where=_served, postgresql_where=_served)
sa.Index("agent_runs_by_thread", RUNS.c.thread_key, RUNS.c.created_us)
sa.Index("agent_runs_by_status", RUNS.c.status)
sa.Index("agent_runs_by_user", RUNS.c.tenant, RUNS.c.user_id, RUNS.c.created_us, RUNS.c.run_id)
_retry = RUNS.c.retry_of != ""
sa.Index("agent_runs_one_retry", RUNS.c.retry_of, unique=True, sqlite_where=_retry, postgresql_where=_retry)

INBOX = sa.Table(
    "agent_inbox",
    METADATA,
    sa.Column("turn_id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("source", _NAME, nullable=False),
    sa.Column("message_id", sa.String(256), nullable=False),
    sa.Column("body_hash", _HASH, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("thread_key", _KEY, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("state", _WORD, nullable=False),
    sa.Column("kind", _WORD, nullable=False),
    sa.Column("text", SealedBytes("agent_inbox.text"), nullable=False),
    sa.Column("language", sa.String(2), nullable=False),
    sa.Column("sealed_code", sa.LargeBinary, nullable=True),
    sa.Column("sealed_words", sa.LargeBinary, nullable=True),
    sa.Column("findings", sa.Text, nullable=False, server_default=""),
    sa.Column("do_not_store", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("allowed_tools", sa.Text, nullable=False, server_default="[]"),
    sa.Column("level", _WORD, nullable=False),
    sa.Column("credential_hash", _HASH, nullable=False),
    sa.Column("traceparent", _WORD, nullable=False),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("resumed", sa.Boolean, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("handled_us", sa.BigInteger, nullable=False),
    sa.Column("run_status", _WORD, nullable=False),
    sa.Column("run_reason", _WORD, nullable=False),
    sa.Column("approval_id", _NAME, nullable=False),
    sa.Column("reply_id", _NAME, nullable=False),
    sa.Column("reply_text", SealedBytes("agent_inbox.reply_text"), nullable=False),
    sa.Column("last_sequence", sa.BigInteger, nullable=False),
    sa.Column("task_id", _NAME, nullable=False, server_default=""),
    sa.Column("on_busy", _WORD, nullable=False, server_default="enqueue"),
    sa.Column("lead_turn", _NAME, nullable=False, server_default=""),
    sa.Column("attachments", sa.Text, nullable=False, server_default="[]"),
    sa.Column("form", _WORD, nullable=False, server_default=""),
    sa.Column("others", SealedBytes("agent_inbox.others"), nullable=True),
    sa.Column("message_starts", sa.Text, nullable=True),  # null in a row from before it was known who wrote the text
    sa.Column("sender_phone", SealedBytes("agent_inbox.sender_phone"), nullable=True),
    sa.Column("over_share", _WORD, nullable=False, server_default=""),
    sa.Column("text_erased", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("tenant", "source", "message_id", name="agent_inbox_once"),
    sa.UniqueConstraint("thread_key", "position", name="agent_inbox_order"),
)
sa.Index("agent_inbox_waiting", INBOX.c.state, INBOX.c.thread_key)
_readable = sa.and_(INBOX.c.state == "handled", sa.not_(INBOX.c.text_erased))
sa.Index("agent_inbox_texts", INBOX.c.handled_us, sqlite_where=_readable, postgresql_where=_readable)
_opened = INBOX.c.task_id != ""
sa.Index("agent_inbox_tasks", INBOX.c.run_id, INBOX.c.position, sqlite_where=_opened, postgresql_where=_opened)

EVENTS = sa.Table(
    "agent_events",
    METADATA,
    sa.Column("thread_key", _KEY, primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("turn_id", _NAME, nullable=False),
    sa.Column("once", sa.String(256), nullable=False),
    sa.Column("kind", _WORD, nullable=False),
    sa.Column("payload", SealedText("agent_events.payload"), nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("run_id", "turn_id", "once", name="agent_events_once"),
)
sa.Index("agent_events_by_turn", EVENTS.c.turn_id, EVENTS.c.sequence)

TOOL_CALLS = sa.Table(
    "agent_tool_calls",
    METADATA,
    sa.Column("run_id", _NAME, primary_key=True),
    sa.Column("tool_call_id", _NAME, primary_key=True),
    sa.Column("ordinal", sa.BigInteger, nullable=False),
    sa.Column("tool", _NAME, nullable=False),
    sa.Column("plan_step", _NAME, nullable=False),
    sa.Column("state", _WORD, nullable=False),
    sa.Column("execution_id", _NAME, nullable=False),
    sa.Column("effect_key", _NAME, nullable=False),
    sa.Column("args_hash", _HASH, nullable=False),
    sa.Column("status", _WORD, nullable=False),
    sa.Column("error_code", _WORD, nullable=False),
    sa.Column("output", SealedBytes("agent_tool_calls.output"), nullable=True),
    sa.Column("size_chars", sa.BigInteger, nullable=False),
    sa.Column("pointer", _NAME, nullable=False),
    sa.Column("resolution", _WORD, nullable=False, server_default=""),
    sa.Column("content_hash", _HASH, nullable=False, server_default=""),
    sa.Column("output_hash", _HASH, nullable=False, server_default=""),
    sa.Column("fence", sa.BigInteger, nullable=False),
    sa.Column("tenant", _NAME, nullable=False, server_default=""),
    sa.Column("user_id", _NAME, nullable=False, server_default=""),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    sa.Column("turn_id", _NAME, nullable=False, server_default=""),  # in which it started
    sa.Column("undo", _WORD, nullable=False, server_default=""),
    sa.Column("undone_by", _NAME, nullable=False, server_default=""),  # the effect key of that undo
    sa.Column("object_id", _NAME, nullable=False, server_default=""),
    sa.Column("told", _WORD, nullable=False, server_default=""),
)
"""undo and told are empty for an effect that is no concern of theirs; runtime/effects/undoing.py has their values."""
_newest = (
    TOOL_CALLS.c.tenant,
    TOOL_CALLS.c.user_id,
    TOOL_CALLS.c.created_us,
    TOOL_CALLS.c.run_id,
    TOOL_CALLS.c.tool_call_id,
)
IS_IN_DOUBT = TOOL_CALLS.c.state == sa.literal_column(f"'{EffectState.IN_DOUBT}'")
sa.Index("agent_tool_calls_by_user", *_newest)
sa.Index("agent_tool_calls_in_doubt", *_newest, sqlite_where=IS_IN_DOUBT, postgresql_where=IS_IN_DOUBT)
IS_KEPT = TOOL_CALLS.c.undo == sa.literal_column("'kept'")
IS_OWED = TOOL_CALLS.c.told == sa.literal_column("'owed'")
"""With literal values, as in the indexes: with bound parameters a partial index is not used."""
sa.Index("agent_tool_calls_kept", *_newest[:3], sqlite_where=IS_KEPT, postgresql_where=IS_KEPT)
sa.Index("agent_tool_calls_owed", *_newest[:3], sqlite_where=IS_OWED, postgresql_where=IS_OWED)

STEPS = sa.Table(
    "agent_steps",
    METADATA,
    sa.Column("run_id", _NAME, primary_key=True),
    sa.Column("superstep", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("turn_id", _NAME, nullable=False),
    sa.Column("node", _WORD, nullable=False),
    sa.Column("started_us", sa.BigInteger, nullable=False),
    sa.Column("duration_us", sa.BigInteger, nullable=False),
    sa.Column("next_nodes", sa.Text, nullable=False),
    sa.Column("tool_call_id", _NAME, nullable=False),
    sa.Column("finish_reason", _WORD, nullable=False),
    sqlite_with_rowid=False,
)

MODEL_CALLS = sa.Table(
    "agent_model_calls",
    METADATA,
    sa.Column("run_id", _NAME, primary_key=True),
    sa.Column("key", _NAME, primary_key=True),
    sa.Column("request_hash", _HASH, nullable=False),
    sa.Column("reply", SealedBytes("agent_model_calls.reply"), nullable=True),
    sa.Column("model", sa.String(256), nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Column("cost_micros", sa.BigInteger, nullable=False),
    sa.Column("fence", sa.BigInteger, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
)

OUTBOX = sa.Table(
    "agent_outbox",
    METADATA,
    sa.Column("outbox_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("kind", _WORD, nullable=False),
    sa.Column("once", sa.String(256), nullable=False, unique=True),
    sa.Column("thread_key", _KEY, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("payload", SealedText("agent_outbox.payload"), nullable=False),
    sa.Column("traceparent", _WORD, nullable=False),
    sa.Column("state", _WORD, nullable=False),
    sa.Column("refusal", _WORD, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("settled_us", sa.BigInteger, nullable=False),
)
sa.Index("agent_outbox_waiting", OUTBOX.c.state, OUTBOX.c.kind, OUTBOX.c.thread_key)

SCHEDULES = sa.Table(
    "agent_schedules",
    METADATA,
    sa.Column("schedule_id", _NAME, primary_key=True),
    sa.Column("effect_key", _NAME, nullable=False, unique=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("thread_key", _KEY, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("language", sa.String(2), nullable=False),
    sa.Column("text", SealedBytes("agent_schedules.text"), nullable=False),
    sa.Column("repeat", sa.String(256), nullable=False),
    sa.Column("time_zone", _WORD, nullable=False),
    sa.Column("start_us", sa.BigInteger, nullable=False),
    sa.Column("due_us", sa.BigInteger, nullable=False),
    sa.Column("state", _WORD, nullable=False),
    sa.Column("cancel_key", _NAME, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
)
_due = SCHEDULES.c.state == "active"
sa.Index("agent_schedules_due", SCHEDULES.c.due_us, sqlite_where=_due, postgresql_where=_due)
sa.Index("agent_schedules_by_user", SCHEDULES.c.tenant, SCHEDULES.c.user_id, SCHEDULES.c.state)
sa.Index("agent_schedules_by_thread", SCHEDULES.c.thread_key)

FORM_SESSIONS = sa.Table(
    "agent_form_sessions",
    METADATA,
    sa.Column("session_id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("thread_key", _KEY, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("form", _WORD, nullable=False),
    sa.Column("version", _HASH, nullable=False),
    sa.Column("status", _WORD, nullable=False),
    sa.Column("state", sa.LargeBinary, nullable=True),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("tool_call_id", _NAME, nullable=False),
    sa.Column("started_us", sa.BigInteger, nullable=False),
    sa.Column("updated_us", sa.BigInteger, nullable=False),
    sa.Column("ended_us", sa.BigInteger, nullable=False),
)
"""A person's answers are sealed in state. A submitted form leaves only who they are, any other ended one nothing."""
_open = FORM_SESSIONS.c.ended_us == 0
sa.Index(
    "agent_form_sessions_one_open",
    FORM_SESSIONS.c.thread_key,
    unique=True,
    sqlite_where=_open,
    postgresql_where=_open,
)
sa.Index(
    "agent_form_sessions_by_user",
    FORM_SESSIONS.c.tenant,
    FORM_SESSIONS.c.user_id,
    FORM_SESSIONS.c.started_us,
    FORM_SESSIONS.c.session_id,
)

FORM_SUBMISSIONS = sa.Table(
    "agent_form_submissions",
    METADATA,
    sa.Column("submission_id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("form", _WORD, nullable=False),
    sa.Column("version", _HASH, nullable=False),
    sa.Column("answers", sa.LargeBinary, nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
)
"""What was submitted is sealed in answers. It is the team's: it outlives its thread, and not its person."""
sa.Index(
    "agent_form_submissions_by_tenant",
    FORM_SUBMISSIONS.c.tenant,
    FORM_SUBMISSIONS.c.created_us,
    FORM_SUBMISSIONS.c.submission_id,
)
sa.Index("agent_form_submissions_by_user", FORM_SUBMISSIONS.c.tenant, FORM_SUBMISSIONS.c.user_id)
sa.Index("agent_form_submissions_by_age", FORM_SUBMISSIONS.c.created_us)

ESCALATIONS = sa.Table(
    "agent_escalations",
    METADATA,
    sa.Column("escalation_id", _NAME, primary_key=True),
    sa.Column("once", sa.String(256), nullable=False),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("user_id", _NAME, nullable=False),
    sa.Column("thread_key", _KEY, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("status", _WORD, nullable=False),
    sa.Column("policy", _WORD, nullable=False),
    sa.Column("reason", SealedBytes("agent_escalations.reason", lost=b""), nullable=False),
    sa.Column("form_id", _NAME, nullable=False),
    sa.Column("form_state", SealedBytes("agent_escalations.form_state", lost=b""), nullable=False),
    sa.Column("language", sa.String(2), nullable=False),
    sa.Column("handler", _NAME, nullable=False),
    sa.Column("display_name", _NAME, nullable=False),
    sa.Column("claim_until_us", sa.BigInteger, nullable=False),
    sa.Column("opened_us", sa.BigInteger, nullable=False),
    sa.Column("queued_us", sa.BigInteger, nullable=False),
    sa.Column("claimed_us", sa.BigInteger, nullable=False),
    sa.Column("ended_us", sa.BigInteger, nullable=False),
    sa.Column("end_reason", _WORD, nullable=False),
    sa.Column("summary", SealedBytes("agent_escalations.summary", lost=b""), nullable=False),
    sa.UniqueConstraint("tenant", "user_id", "once", name="agent_escalations_once"),
)
IS_UNENDED = ESCALATIONS.c.status.in_([sa.literal_column(f"'{status}'") for status in ("open", "claimed")])
sa.Index(
    "agent_escalations_one_active",
    ESCALATIONS.c.thread_key,
    unique=True,
    sqlite_where=IS_UNENDED,
    postgresql_where=IS_UNENDED,
)
sa.Index("agent_escalations_by_thread", ESCALATIONS.c.thread_key)
sa.Index(
    "agent_escalations_by_queue",
    ESCALATIONS.c.tenant,
    ESCALATIONS.c.status,
    ESCALATIONS.c.opened_us,
    ESCALATIONS.c.escalation_id,
)

ESCALATION_ENTRIES = sa.Table(
    "agent_escalation_entries",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("escalation_id", _NAME, nullable=False),
    sa.Column("once", sa.String(300), nullable=False),
    sa.Column("kind", _WORD, nullable=False),
    sa.Column("status", _WORD, nullable=False),
    sa.Column("actor", _NAME, nullable=False),
    sa.Column("text", SealedBytes("agent_escalation_entries.text", lost=b""), nullable=False),
    sa.Column("created_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("tenant", "once", name="agent_escalation_entries_once"),
)
sa.Index("agent_escalation_entries_of", ESCALATION_ENTRIES.c.escalation_id, ESCALATION_ENTRIES.c.sequence)

ESCALATION_QUEUES = sa.Table(
    "agent_escalation_queues",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("last_sequence", sa.BigInteger, nullable=False),
)

ERASURES = sa.Table(
    "agent_erasures",
    METADATA,
    sa.Column("erasure_id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("request_hash", _HASH, nullable=False),
    sa.Column("record", sa.Text, nullable=False),
)
sa.Index("agent_erasures_by_request", ERASURES.c.request_hash)

NAMED_LEASES = sa.Table(
    "agent_duties",
    METADATA,
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("holder", _NAME, nullable=False),
    sa.Column("until_us", sa.BigInteger, nullable=False),
)

MARKS = sa.Table(
    "agent_marks",
    METADATA,
    sa.Column("name", _WORD, primary_key=True),
    sa.Column("value", _NAME, nullable=False),
)


def to_bytes(text: str) -> bytes:
    """Encode a text as the tables store it; lone surrogates, which strict UTF-8 cannot represent, survive."""
    return text.encode("utf-8", "surrogatepass")


def to_text(data: bytes) -> str:
    """Decode a stored value."""
    return data.decode("utf-8", "surrogatepass")


TEXT = Form(to_text, to_bytes)
"""A text that a person or a tool wrote."""

LIFTS = sa.Table(
    "agent_lifts",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("user_id", _NAME, primary_key=True),
    sa.Column("lifted_us", sa.BigInteger, nullable=False),
    sa.Column("lifted_by", _NAME, nullable=False),
    sa.Column("until_us", sa.BigInteger, nullable=False),
)

SHARES = sa.Table(
    "agent_shares",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("user_id", _NAME, primary_key=True),
    sa.Column("kind", _WORD, primary_key=True),
    sa.Column("day", sa.BigInteger, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False),
    sa.Column("told", sa.Boolean, nullable=False),
)

"""RiskGate's tables, for SQLite and PostgreSQL: times are microseconds, JSON and sealed values are bytes."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import orjson
import sqlalchemy as sa
from phylactery_chassis.db.columns import Form

METADATA = sa.MetaData()
_NAME = sa.String(128)
_HASH = sa.String(80)

decisions = sa.Table(
    "decisions",
    METADATA,
    sa.Column("id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("subject", _NAME, nullable=False),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("tool_call_id", _NAME, nullable=False),
    sa.Column("counted_approval_id", _NAME, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("fingerprint", _HASH, nullable=False),
    sa.Column("decision", sa.String(16), nullable=False),
    sa.Column("reasons", sa.LargeBinary, nullable=False),
    sa.Column("tool", _NAME, nullable=False),
    sa.Column("tool_version", _HASH, nullable=False),
    sa.Column("args_hash", _HASH, nullable=False),
    sa.Column("policy_ids", sa.LargeBinary, nullable=False),
    sa.Column("bundle_revision", sa.BigInteger, nullable=False),
    sa.Column("risk", sa.String(16), nullable=False),
    sa.Column("approval_id", _NAME, nullable=False),
    sa.Column("permit_id", _NAME, nullable=False),
    sa.Column("permit_us", sa.BigInteger, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("audit_log", _NAME, nullable=False),
    sa.Column("audit_index", sa.BigInteger, nullable=False),
    sa.Column("pathway", sa.String(32), nullable=False),
    sa.Column("args_commitment", _HASH, nullable=False, server_default=""),
    # when an operator voided it, 0 for never
    sa.Column("revoke_us", sa.BigInteger, nullable=False, server_default="0"),
    # how much the call can do, "unspecified" for decisions of earlier versions
    sa.Column("stakes", sa.String(16), nullable=False, server_default="unspecified"),
    # the newest freeze that was known when its newest permit was issued, 0 for none
    sa.Column("permit_freeze", sa.BigInteger, nullable=False, server_default="0"),
    # the delegate that proposed the call, empty if the user did
    sa.Column("actor", _NAME, nullable=False, server_default=""),
    sa.UniqueConstraint(
        "tenant", "subject", "run_id", "tool_call_id", "counted_approval_id", name="decisions_one_per_call"
    ),
    sa.Index("decisions_by_thread_call", "tenant", "subject", "thread_id", "tool_call_id", "create_us"),
    sa.Index(
        "decisions_revoked",
        "tenant",
        "subject",
        "thread_id",
        sqlite_where=sa.text("revoke_us != 0"),
        postgresql_where=sa.text("revoke_us != 0"),
    ),
)

approvals = sa.Table(
    "approvals",
    METADATA,
    sa.Column("id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("approval_class", _NAME, nullable=False),
    sa.Column("who", sa.String(16), nullable=False),
    sa.Column("approvers", sa.Integer, nullable=False),
    sa.Column("tool", _NAME, nullable=False),
    sa.Column("risk", sa.String(16), nullable=False),
    sa.Column("args_hash", _HASH, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("run_id", _NAME, nullable=False),
    sa.Column("tool_call_id", _NAME, nullable=False),
    sa.Column("requester", _NAME, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("expire_us", sa.BigInteger, nullable=False),
    sa.Column("decision_id", _NAME, nullable=False),
    sa.Column("policy_ids", sa.LargeBinary, nullable=False),
    sa.Column("decide_us", sa.BigInteger, nullable=False),
    sa.Column("decided_by", _NAME, nullable=False),
    sa.Column("closed_reason", sa.String(32), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False, server_default="0"),
    sa.Column("args_commitment", _HASH, nullable=False, server_default=""),
    sa.Column("stakes", sa.String(16), nullable=False, server_default="unspecified"),
    sa.Index("approvals_by_call", "tenant", "requester", "tool", "decide_us"),
    sa.Index("approvals_by_asking", "tenant", "requester", "create_us"),
    sa.Index("approvals_by_tenant", "tenant", "create_us", "id"),
    sa.Index("approvals_by_requester", "tenant", "requester", "state"),
    sa.Index("approvals_by_expiry", "tenant", "state", "expire_us"),
)

approval_votes = sa.Table(
    "approval_votes",
    METADATA,
    sa.Column("approval_id", _NAME, sa.ForeignKey("approvals.id"), primary_key=True),
    sa.Column("subject", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("vote_us", sa.BigInteger, nullable=False),
    sa.Column("approver", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("level", _NAME, nullable=False, server_default=""),
    sa.Column("groups", sa.LargeBinary, nullable=False, server_default=sa.text("''")),
    # a MAC under a key outside the database, empty for votes of earlier versions
    sa.Column("proof", _HASH, nullable=False, server_default=""),
)

approval_changes = sa.Table(
    "approval_changes",
    METADATA,
    sa.Column("approval_id", _NAME, sa.ForeignKey("approvals.id"), primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("votes", sa.Integer, nullable=False),
    sa.Column("decide_us", sa.BigInteger, nullable=False),
    sa.Column("decided_by", _NAME, nullable=False),
    sa.Column("closed_reason", sa.String(32), nullable=False),
    sa.Column("change_us", sa.BigInteger, nullable=False),
    sa.Index("approval_changes_in_order", "tenant", "position"),
    sa.Index("approval_changes_by_time", "change_us", "tenant", "position"),
)

redemptions = sa.Table(
    "redemptions",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("subject", _NAME, primary_key=True),
    sa.Column("run_id", _NAME, primary_key=True),
    sa.Column("tool_call_id", _NAME, primary_key=True),
    sa.Column("execution_id", _NAME, nullable=False),
    sa.Column("decision_id", _NAME, sa.ForeignKey("decisions.id"), nullable=False),
    sa.Column("receipt_claims", sa.LargeBinary, nullable=False),
    sa.Column("redeem_us", sa.BigInteger, nullable=False),
    sa.Column("audit_log", _NAME, nullable=False),
    sa.Column("audit_index", sa.BigInteger, nullable=False),
    sa.Column("low_stakes", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("told_us", sa.BigInteger, nullable=False, server_default="0"),
    sa.UniqueConstraint("tenant", "subject", "execution_id", name="redemptions_one_per_execution"),
)
_owed = sa.and_(redemptions.c.low_stakes, redemptions.c.told_us == sa.literal_column("0"))
sa.Index("redemptions_owed", redemptions.c.tenant, redemptions.c.subject, sqlite_where=_owed, postgresql_where=_owed)

outcomes = sa.Table(
    "outcomes",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("subject", _NAME, primary_key=True),
    sa.Column("execution_id", _NAME, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("result_hash", _HASH, nullable=False),
    sa.Column("result_size", sa.BigInteger, nullable=False),
    sa.Column("error_code", sa.String(64), nullable=False),
    sa.Column("report_us", sa.BigInteger, nullable=False),
    sa.Column("audit_log", _NAME, nullable=False),
    sa.Column("audit_index", sa.BigInteger, nullable=False),
    sa.Column("reversals", sa.Text, nullable=False, server_default="[]"),
)

undo_failures = sa.Table(
    "undo_failures",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("tool", _NAME, primary_key=True),
    # the user whose calls it concerns, empty for every call of the tenant
    sa.Column("subject", _NAME, primary_key=True),
    sa.Column("fail_us", sa.BigInteger, nullable=False),
    sa.Column("execution_id", _NAME, nullable=False),
    sa.Column("error_code", sa.String(64), nullable=False),
)

audit_logs = sa.Table(
    "audit_logs",
    METADATA,
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("frontier", sa.LargeBinary, nullable=False),
    sa.Column("signed_size", sa.BigInteger, nullable=False),
    sa.Column("data_key_id", sa.String(32), nullable=False),
    # the latest time in the log: a clock that is set back must not put an entry before its predecessor
    sa.Column("last_us", sa.BigInteger, nullable=False),
)

audit_entries = sa.Table(
    "audit_entries",
    METADATA,
    sa.Column("log", _NAME, sa.ForeignKey("audit_logs.name"), primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("leaf", sa.LargeBinary, nullable=False),
    sa.Column("record", sa.LargeBinary, nullable=False),
    # search columns, copied from the record, which is authoritative
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("subject", _NAME, nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("time_us", sa.BigInteger, nullable=False),
    # the decision, or the answer of EvaluateAccess, that the record is about, empty for none
    sa.Column("decision_id", _NAME, nullable=False, server_default=""),
    sa.Index("audit_entries_by_time", "tenant", "time_us", "log", "position"),
    sa.Index(
        "audit_entries_by_decision",
        "tenant",
        "decision_id",
        sqlite_where=sa.text("decision_id != ''"),
        postgresql_where=sa.text("decision_id != ''"),
    ),
)

# heads of perfect subtrees of 256, 65,536 and 16,777,216 entries, so that a proof reads few leaves; filled in later
audit_subtrees = sa.Table(
    "audit_subtrees",
    METADATA,
    sa.Column("log", _NAME, sa.ForeignKey("audit_logs.name"), primary_key=True),
    sa.Column("tier", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("head", sa.LargeBinary, nullable=False),
)

audit_values = sa.Table(
    "audit_values",
    METADATA,
    sa.Column("log", _NAME, primary_key=True),
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)

audit_checkpoints = sa.Table(
    "audit_checkpoints",
    METADATA,
    sa.Column("log", _NAME, sa.ForeignKey("audit_logs.name"), primary_key=True),
    sa.Column("size", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("note", sa.LargeBinary, nullable=False),
    sa.Column("sign_us", sa.BigInteger, nullable=False),
)

usage_calls = sa.Table(
    "usage_calls",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("budget", sa.String(64), primary_key=True),
    sa.Column("key", _HASH, primary_key=True),
    sa.Column("count_us", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("receipt_id", _NAME, primary_key=True),
    sa.Column("currency", _HASH, nullable=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("end_us", sa.BigInteger, nullable=False),
    sa.Index("usage_calls_by_end", "end_us"),
)

usage_recipients = sa.Table(
    "usage_recipients",
    METADATA,
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("budget", sa.String(64), primary_key=True),
    sa.Column("key", _HASH, primary_key=True),
    sa.Column("recipient", _HASH, primary_key=True),
    sa.Column("count_us", sa.BigInteger, nullable=False),
    sa.Column("end_us", sa.BigInteger, nullable=False),
    sa.Index("usage_recipients_by_end", "end_us"),
)

bundles = sa.Table(
    "bundles",
    METADATA,
    sa.Column("hash", _HASH, primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("files", sa.LargeBinary, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
)

bundle_heads = sa.Table(
    "bundle_heads",
    METADATA,
    sa.Column("slot", sa.String(16), primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("hash", _HASH, nullable=False),
    sa.Column("source", sa.String(16), nullable=False),
    sa.Column("signed_by", _NAME, nullable=False),
    sa.Column("activate_us", sa.BigInteger, nullable=False),
    sa.Column("activated_by", _NAME, nullable=False),
    # counts activations: a later bundle has a lower revision after a rollback
    sa.Column("number", sa.BigInteger, nullable=False, server_default="0"),
)

# every bundle that was ever active in a slot, by activation number
bundle_activations = sa.Table(
    "bundle_activations",
    METADATA,
    sa.Column("slot", sa.String(16), primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("hash", _HASH, nullable=False),
    sa.Column("source", sa.String(16), nullable=False),
    sa.Column("signed_by", _NAME, nullable=False),
    sa.Column("activate_us", sa.BigInteger, nullable=False),
    sa.Column("activated_by", _NAME, nullable=False),
    sa.Column("activated_by_tenant", _NAME, nullable=False),
)

# freezes of operators; an empty tenant means every tenant
freezes = sa.Table(
    "freezes",
    METADATA,
    sa.Column("scope", sa.String(16), primary_key=True),
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("by_installation", sa.Boolean, primary_key=True),
    sa.Column("freeze_us", sa.BigInteger, nullable=False),
    sa.Column("frozen_by", _NAME, nullable=False),
    sa.Column("frozen_by_tenant", _NAME, nullable=False),
    sa.Column("reason", sa.String(500), nullable=False),
    # ascending in the order in which targets were frozen
    sa.Column("number", sa.BigInteger, nullable=False, server_default="1"),
    # when it was lifted, 0 while it is in force
    sa.Column("lift_us", sa.BigInteger, nullable=False, server_default="0"),
)


# one request of a user with its input; expires, and is removed with its pieces
tasks = sa.Table(
    "tasks",
    METADATA,
    sa.Column("id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("subject", _NAME, nullable=False),
    sa.Column("thread_id", _NAME, nullable=False),
    sa.Column("request_id", _NAME, nullable=False),
    # a keyed hash of its initial input, empty once it ended
    sa.Column("begun", _HASH, nullable=False),
    sa.Column("continues_id", _NAME, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("expire_us", sa.BigInteger, nullable=False),
    sa.Column("end_us", sa.BigInteger, nullable=False),
    sa.Column("pieces", sa.Integer, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("tenant", "subject", "request_id", name="tasks_one_per_request"),
    sa.Index("tasks_by_user", "tenant", "subject", "expire_us"),
    sa.Index("tasks_by_thread", "tenant", "thread_id"),
    sa.Index("tasks_by_expiry", "expire_us"),
)

# the words, which are number 0, and every result, each sealed
task_pieces = sa.Table(
    "task_pieces",
    METADATA,
    sa.Column("task_id", _NAME, sa.ForeignKey("tasks.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tool_call_id", _NAME, nullable=False),
    sa.Column("shown", _HASH, nullable=False),
    sa.Column("held", sa.Integer, nullable=False),
    sa.Column("cut", sa.Boolean, nullable=False),
    sa.Column("unproven", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("task_id", "tool_call_id", name="task_pieces_one_per_call"),
)

# redeemed calls that used up an ask of a task's words, one row each; removed with the task
ask_uses = sa.Table(
    "ask_uses",
    METADATA,
    sa.Column("task_id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("subject", _NAME, primary_key=True),
    # the task and the number of the ask in its words
    sa.Column("ask", _NAME, primary_key=True),
    sa.Column("run_id", _NAME, primary_key=True),
    sa.Column("tool_call_id", _NAME, primary_key=True),
    sa.Column("args_hash", _HASH, nullable=False),
    sa.Column("use_us", sa.BigInteger, nullable=False),
)

# what the words of a later task took back from this one
retractions = sa.Table(
    "retractions",
    METADATA,
    sa.Column("task_id", _NAME, primary_key=True),
    sa.Column("tenant", _NAME, primary_key=True),
    sa.Column("subject", _NAME, primary_key=True),
    sa.Column("by_task_id", _NAME, primary_key=True),
    sa.Column("everything", sa.Boolean, nullable=False),
    # effects by name, nouns and targets as keyed hashes
    sa.Column("forbidden", sa.LargeBinary, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
)

# what people are to be told, one row for each sink; see notices.outbox
notices = sa.Table(
    "notices",
    METADATA,
    sa.Column("id", _NAME, primary_key=True),
    sa.Column("sink", sa.String(64), primary_key=True),
    # what is told once, whoever notes it
    sa.Column("once", _NAME, nullable=False),
    sa.Column("event", sa.String(32), nullable=False),
    sa.Column("tenant", _NAME, nullable=False),
    sa.Column("subject", _NAME, nullable=False),
    sa.Column("about", _NAME, nullable=False),
    sa.Column("detail", sa.LargeBinary, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("due_us", sa.BigInteger, nullable=False),
    sa.Column("next_us", sa.BigInteger, nullable=False),
    sa.Column("lease_us", sa.BigInteger, nullable=False),
    sa.Column("claimed_by", _NAME, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("error", sa.String(64), nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("end_us", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("sink", "once", name="notices_once"),
    sa.Index("notices_due", "sink", "state", "due_us"),
    sa.Index("notices_in_order", "sink", "about", "state"),
    sa.Index("notices_by_user", "tenant", "subject"),
    sa.Index("notices_by_end", "end_us"),
)

notice_sinks = sa.Table(
    "notice_sinks",
    METADATA,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("fingerprint", _HASH, nullable=False),
    # when it said that it is gone, 0 for never
    sa.Column("disabled_us", sa.BigInteger, nullable=False),
    # when it last took a notice; since when it takes none, and why
    sa.Column("ok_us", sa.BigInteger, nullable=False),
    sa.Column("fail_us", sa.BigInteger, nullable=False),
    sa.Column("fails", sa.Integer, nullable=False),
    sa.Column("error", sa.String(64), nullable=False),
    sa.Column("told", sa.String(300), nullable=False),
)


def row_of(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name; unlike asdict, without copying values."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def to_json(value: Any) -> bytes:
    """Return a JSON column's bytes, for texts and integers in lists and objects."""
    return orjson.dumps(value)


def from_json(data: bytes) -> Any:
    """Parse a JSON column's bytes."""
    return json.loads(data)


JSON_TUPLE = Form(lambda data: tuple(from_json(data)), to_json)
"""A tuple of texts, as a JSON column's bytes."""

"""The nodes runs executed, what runs used, runs begun once more, and a user's ledger in its order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_OWNER = """
UPDATE agent_tool_calls SET
    tenant = (SELECT tenant FROM agent_runs WHERE agent_runs.run_id = agent_tool_calls.run_id),
    user_id = (SELECT user_id FROM agent_runs WHERE agent_runs.run_id = agent_tool_calls.run_id)
WHERE EXISTS (SELECT 1 FROM agent_runs WHERE agent_runs.run_id = agent_tool_calls.run_id)
"""
_USED = """
UPDATE agent_runs SET
    tool_calls = (SELECT count(*) FROM agent_tool_calls WHERE agent_tool_calls.run_id = agent_runs.run_id)
"""


def upgrade() -> None:
    op.add_column("agent_runs", sa.Column("retry_of", sa.String(128), nullable=False, server_default=""))
    op.add_column("agent_runs", sa.Column("supersteps", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("agent_runs", sa.Column("tool_calls", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("agent_tool_calls", sa.Column("tenant", sa.String(128), nullable=False, server_default=""))
    op.add_column("agent_tool_calls", sa.Column("user_id", sa.String(128), nullable=False, server_default=""))
    op.execute(_OWNER)
    op.execute(_USED)
    retry = sa.text("retry_of != ''")
    op.create_index(
        "agent_runs_one_retry", "agent_runs", ["retry_of"], unique=True, sqlite_where=retry, postgresql_where=retry
    )
    newest = ["tenant", "user_id", "created_us", "run_id", "tool_call_id"]
    op.create_index("agent_tool_calls_by_user", "agent_tool_calls", newest)
    doubted = sa.text("state = 'in_doubt'")
    op.create_index(
        "agent_tool_calls_in_doubt", "agent_tool_calls", newest, sqlite_where=doubted, postgresql_where=doubted
    )
    op.create_table(
        "agent_steps",
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("superstep", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("turn_id", sa.String(128), nullable=False),
        sa.Column("node", sa.String(64), nullable=False),
        sa.Column("started_us", sa.BigInteger, nullable=False),
        sa.Column("duration_us", sa.BigInteger, nullable=False),
        sa.Column("next_nodes", sa.Text, nullable=False),
        sa.Column("tool_call_id", sa.String(128), nullable=False),
        sa.Column("finish_reason", sa.String(64), nullable=False),
        sqlite_with_rowid=False,
    )

"""Runs that were cancelled, effects a person settled, and a user's runs in their order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_runs", sa.Column("cancel_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("agent_tool_calls", sa.Column("resolution", sa.String(64), nullable=False, server_default=""))
    op.create_index("agent_runs_by_user", "agent_runs", ["tenant", "user_id", "created_us", "run_id"])

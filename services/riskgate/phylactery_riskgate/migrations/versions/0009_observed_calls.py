"""Observed calls: an index of decisions by thread and tool call, and a flag for unproven results."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index and the column; earlier observations count as proven, as they did then."""
    op.create_index(
        "decisions_by_thread_call", "decisions", ["tenant", "subject", "thread_id", "tool_call_id", "create_us"]
    )
    op.add_column("task_pieces", sa.Column("unproven", sa.Boolean, nullable=False, server_default=sa.false()))

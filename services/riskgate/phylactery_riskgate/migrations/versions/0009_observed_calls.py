"""What was observed is held against what was decided: decisions by thread and tool call, and results without proof."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index, and the column, under which what was shown before counts as proven, as it did then."""
    op.create_index(
        "decisions_by_thread_call", "decisions", ["tenant", "subject", "thread_id", "tool_call_id", "create_us"]
    )
    op.add_column("task_pieces", sa.Column("unproven", sa.Boolean, nullable=False, server_default=sa.false()))

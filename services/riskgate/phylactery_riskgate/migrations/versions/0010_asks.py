"""Uses of the asks of tasks, and retractions by later words."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables, empty: earlier redemptions used up nothing, and nothing was taken back."""
    op.create_table(
        "ask_uses",
        sa.Column("task_id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("ask", sa.String(128), primary_key=True),
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("tool_call_id", sa.String(128), primary_key=True),
        sa.Column("args_hash", sa.String(80), nullable=False),
        sa.Column("use_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "retractions",
        sa.Column("task_id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("by_task_id", sa.String(128), primary_key=True),
        sa.Column("everything", sa.Boolean, nullable=False),
        sa.Column("forbidden", sa.LargeBinary, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )

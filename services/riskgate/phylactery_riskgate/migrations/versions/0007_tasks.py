"""Tasks: one row per request, and one sealed row for the words and for every result."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables, empty."""
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=False),
        sa.Column("begun", sa.String(80), nullable=False),
        sa.Column("continues_id", sa.String(128), nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("expire_us", sa.BigInteger, nullable=False),
        sa.Column("end_us", sa.BigInteger, nullable=False),
        sa.Column("pieces", sa.Integer, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("tenant", "subject", "request_id", name="tasks_one_per_request"),
    )
    op.create_index("tasks_by_user", "tasks", ["tenant", "subject", "expire_us"])
    op.create_index("tasks_by_thread", "tasks", ["tenant", "thread_id"])
    op.create_index("tasks_by_expiry", "tasks", ["expire_us"])
    op.create_table(
        "task_pieces",
        sa.Column("task_id", sa.String(128), sa.ForeignKey("tasks.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("tool_call_id", sa.String(128), nullable=False),
        sa.Column("shown", sa.String(80), nullable=False),
        sa.Column("held", sa.Integer, nullable=False),
        sa.Column("cut", sa.Boolean, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("task_id", "tool_call_id", name="task_pieces_one_per_call"),
    )

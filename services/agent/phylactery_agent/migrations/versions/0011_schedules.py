"""Reminders: what a person asked to be told later, once or again and again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_schedules",
        sa.Column("schedule_id", sa.String(128), primary_key=True),
        sa.Column("effect_key", sa.String(128), nullable=False, unique=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("thread_key", sa.String(64), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("language", sa.String(2), nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("repeat", sa.String(256), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("start_us", sa.BigInteger, nullable=False),
        sa.Column("due_us", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(64), nullable=False),
        sa.Column("cancel_key", sa.String(128), nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
        sa.Column("updated_us", sa.BigInteger, nullable=False),
    )
    active = sa.text("state = 'active'")
    op.create_index("agent_schedules_due", "agent_schedules", ["due_us"], sqlite_where=active, postgresql_where=active)
    op.create_index("agent_schedules_by_user", "agent_schedules", ["tenant", "user_id", "state"])
    op.create_index("agent_schedules_by_thread", "agent_schedules", ["thread_key"])

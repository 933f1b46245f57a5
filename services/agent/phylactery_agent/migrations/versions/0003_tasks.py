"""Tasks: the one at RiskGate that a message opened."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_inbox", sa.Column("task_id", sa.String(128), nullable=False, server_default=""))
    opened = sa.text("task_id != ''")
    op.create_index(
        "agent_inbox_tasks", "agent_inbox", ["run_id", "position"], sqlite_where=opened, postgresql_where=opened
    )

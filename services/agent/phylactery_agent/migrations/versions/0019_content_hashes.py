"""The content that a proposed call is bound to beside its arguments: the hash of the file that it would send."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_tool_calls", sa.Column("content_hash", sa.String(71), nullable=False, server_default=""))

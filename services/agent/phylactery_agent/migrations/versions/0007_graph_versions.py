"""Which version of its graph a run stands in. Of a run from before nobody knows, so it does not go on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_runs", sa.Column("graph_version", sa.String(64), nullable=False, server_default=""))

"""What Inspect found in a message, its own words sealed for the turn, and what its caller wants and may use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_inbox", sa.Column("sealed_words", sa.LargeBinary, nullable=True))
    op.add_column("agent_inbox", sa.Column("findings", sa.Text, nullable=False, server_default=""))
    op.add_column("agent_inbox", sa.Column("do_not_store", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("agent_inbox", sa.Column("allowed_tools", sa.Text, nullable=False, server_default="[]"))

"""Decisions say which delegate proposed the call, so that a frozen one's calls are found."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of earlier decisions, the log alone tells the actor."""
    op.add_column("decisions", sa.Column("actor", sa.String(128), nullable=False, server_default=""))

"""Proofs of votes."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; earlier votes that are in the audit log get their proofs at the first start."""
    op.add_column("approval_votes", sa.Column("proof", sa.String(80), nullable=False, server_default=""))

"""Votes carry what proves them."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; votes from before get their proofs at the first start, where the audit log tells of them."""
    op.add_column("approval_votes", sa.Column("proof", sa.String(80), nullable=False, server_default=""))

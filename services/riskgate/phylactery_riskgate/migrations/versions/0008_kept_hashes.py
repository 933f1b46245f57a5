"""The commitment to a call's hash, alongside the keyed hash in rows (audit.commitments)."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, empty: earlier records hold the hash itself, and no commitment to it."""
    for table in ("decisions", "approvals"):
        op.add_column(table, sa.Column("args_commitment", sa.String(80), nullable=False, server_default=""))

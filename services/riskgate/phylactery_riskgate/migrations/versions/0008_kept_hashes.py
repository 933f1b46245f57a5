"""The commitment to a call's hash, beside the keyed hash that rows keep from now on: see kept_hashes."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, empty: the records of what was decided before hold the hash itself, and no commitment to it."""
    for table in ("decisions", "approvals"):
        op.add_column(table, sa.Column("args_commitment", sa.String(80), nullable=False, server_default=""))

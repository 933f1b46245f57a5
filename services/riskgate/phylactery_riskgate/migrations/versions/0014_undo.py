"""Tools whose undo failed, what undone effects were reported, and effects of low stakes the person was not told of."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and the table; nothing redeemed before ran for its low stakes."""
    op.add_column("redemptions", sa.Column("low_stakes", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("redemptions", sa.Column("told_us", sa.BigInteger, nullable=False, server_default="0"))
    owed = sa.text("low_stakes AND told_us = 0")
    op.create_index("redemptions_owed", "redemptions", ["tenant", "subject"], sqlite_where=owed, postgresql_where=owed)
    op.add_column("outcomes", sa.Column("reversals", sa.Text, nullable=False, server_default="[]"))
    op.create_table(
        "undo_failures",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("tool", sa.String(128), primary_key=True),
        sa.Column("fail_us", sa.BigInteger, nullable=False),
        sa.Column("execution_id", sa.String(128), nullable=False),
        sa.Column("error_code", sa.String(64), nullable=False),
    )

"""Budget counters, one row per call and one per recipient under the key of a budget; and pathways."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the empty counters, and store a decision's pathway, so that Redeem decides with the same one."""
    pathway = sa.Column("pathway", sa.String(32), nullable=False, server_default="unspecified")
    op.add_column("decisions", pathway)
    op.create_table(
        "usage_calls",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("budget", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(80), primary_key=True),
        sa.Column("count_us", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("receipt_id", sa.String(128), primary_key=True),
        sa.Column("currency", sa.String(80), nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("end_us", sa.BigInteger, nullable=False),
    )
    op.create_index("usage_calls_by_end", "usage_calls", ["end_us"])
    op.create_table(
        "usage_recipients",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("budget", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(80), primary_key=True),
        sa.Column("recipient", sa.String(80), primary_key=True),
        sa.Column("count_us", sa.BigInteger, nullable=False),
        sa.Column("end_us", sa.BigInteger, nullable=False),
    )
    op.create_index("usage_recipients_by_end", "usage_recipients", ["end_us"])

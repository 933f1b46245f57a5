"""Notices: what people are to be told, and what is known of the sinks."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables; of what happened before, nobody is told."""
    op.create_table(
        "notices",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("sink", sa.String(64), primary_key=True),
        sa.Column("once", sa.String(128), nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("about", sa.String(128), nullable=False),
        sa.Column("detail", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("due_us", sa.BigInteger, nullable=False),
        sa.Column("next_us", sa.BigInteger, nullable=False),
        sa.Column("lease_us", sa.BigInteger, nullable=False),
        sa.Column("claimed_by", sa.String(128), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("error", sa.String(64), nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("end_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("sink", "once", name="notices_once"),
    )
    op.create_index("notices_due", "notices", ["sink", "state", "due_us"])
    op.create_index("notices_in_order", "notices", ["sink", "about", "state"])
    op.create_index("notices_by_user", "notices", ["tenant", "subject"])
    op.create_index("notices_by_end", "notices", ["end_us"])
    op.create_table(
        "notice_sinks",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("fingerprint", sa.String(80), nullable=False),
        sa.Column("disabled_us", sa.BigInteger, nullable=False),
        sa.Column("ok_us", sa.BigInteger, nullable=False),
        sa.Column("fail_us", sa.BigInteger, nullable=False),
        sa.Column("fails", sa.Integer, nullable=False),
        sa.Column("error", sa.String(64), nullable=False),
        sa.Column("told", sa.String(300), nullable=False),
    )

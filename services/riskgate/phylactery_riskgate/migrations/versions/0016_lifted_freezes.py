"""Lifted freezes stay on record: a permit that was issued before one is void after it as well."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Give the freezes in force the number 1: earlier permits, with 0, are void where these cover the call."""
    op.add_column("freezes", sa.Column("number", sa.BigInteger, nullable=False, server_default="1"))
    op.add_column("freezes", sa.Column("lift_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("decisions", sa.Column("permit_freeze", sa.BigInteger, nullable=False, server_default="0"))

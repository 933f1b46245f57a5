"""The stakes of a call, kept with its decision and its approval."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what was decided before has no stakes."""
    for table in ("decisions", "approvals"):
        op.add_column(table, sa.Column("stakes", sa.String(16), nullable=False, server_default="unspecified"))

"""A failed undo says whose calls it concerns: one user's report does not concern the whole tenant."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table anew, with the user in its key; earlier failures concern the tenant, as they did."""
    op.rename_table("undo_failures", "earlier_undo_failures")
    op.create_table(
        "undo_failures",
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("fail_us", sa.BigInteger, nullable=False),
        sa.Column("execution_id", sa.String(128), nullable=False),
        sa.Column("error_code", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "tool", "subject", name="undo_failures_one_per_reporter"),
    )
    op.execute(
        "INSERT INTO undo_failures (tenant, tool, subject, fail_us, execution_id, error_code) "
        "SELECT tenant, tool, '', fail_us, execution_id, error_code FROM earlier_undo_failures"
    )
    op.drop_table("earlier_undo_failures")

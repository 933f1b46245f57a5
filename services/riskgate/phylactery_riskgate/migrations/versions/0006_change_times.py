"""Index of approval changes by time, so that pruning does not read all of them every minute."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    op.create_index("approval_changes_by_time", "approval_changes", ["change_us", "tenant", "position"])

"""An index of revoked decisions: the same call under another id is looked up there."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index; it holds revoked decisions alone, which are few."""
    revoked = sa.text("revoke_us != 0")
    op.create_index(
        "decisions_revoked",
        "decisions",
        ["tenant", "subject", "thread_id"],
        sqlite_where=revoked,
        postgresql_where=revoked,
    )

"""What somebody else wrote of a message. It stays null in rows from before: who wrote their text is not known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("messages", sa.Column("passed_on", sa.LargeBinary, nullable=True))

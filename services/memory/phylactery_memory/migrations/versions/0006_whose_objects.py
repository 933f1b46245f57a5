"""The key that an object's text was sealed under, and the erasure that removes it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("key_id", "erasure_id"):
        op.add_column("output_objects", sa.Column(name, sa.String(64), nullable=False, server_default=""))

"""What came with a message: the kind and the pointer of each attachment, whose content memory keeps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_inbox", sa.Column("attachments", sa.Text, nullable=False, server_default="[]"))

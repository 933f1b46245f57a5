"""The number a person writes from, sealed, for as long as a turn that means it is not served."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_inbox", sa.Column("sender_phone", sa.LargeBinary, nullable=True))

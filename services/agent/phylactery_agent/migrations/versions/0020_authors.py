"""What others wrote of a message, and where each of several begins.

Both stay null in rows from before: of these nobody knows who wrote the text.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_inbox", sa.Column("others", sa.LargeBinary, nullable=True))
    op.add_column("agent_inbox", sa.Column("message_starts", sa.Text, nullable=True))

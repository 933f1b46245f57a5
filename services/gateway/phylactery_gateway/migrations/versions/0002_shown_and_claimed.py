"""When messages were sent, who has a conversation, which thread was read, and people who are one person.

Former phone numbers go: a network gives them to somebody else.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("outbox", sa.Column("sent_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("conversations", sa.Column("claimed", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("conversations", sa.Column("thread_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("accounts", sa.Column("templates_from_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("users", sa.Column("merged_into", sa.String(64), nullable=False, server_default=""))
    op.execute("DELETE FROM identities WHERE kind = 'phone' AND NOT current")

"""Texts are sealed until they are given or delivered, and nothing of a webhook is kept but its id and kind.

Texts of before are sealed or emptied when the gateway starts, which has the key; see store/former_texts.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "marks",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.String(128), nullable=False),
    )
    op.add_column("turns", sa.Column("approval_id", sa.String(128), nullable=False, server_default=""))
    op.add_column("outbox", sa.Column("emptied", sa.Boolean, nullable=False, server_default=sa.false()))
    if op.get_context().dialect.name == "postgresql":  # a sealed name is longer; SQLite knows no lengths
        op.alter_column("media", "name", type_=sa.Text())
    # PostgreSQL leaves what a dropped column held in the rows until they are written again
    op.execute("UPDATE inbox SET body = ''")
    op.drop_column("inbox", "body")

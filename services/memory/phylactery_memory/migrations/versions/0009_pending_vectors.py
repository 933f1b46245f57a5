"""Memories without a vector, because the embeddings endpoint was unavailable when they were written."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pending_vectors",
        sa.Column("owner_id", sa.BigInteger, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due_us", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "number"],
            ["user_memory.owner_id", "user_memory.number"],
            name="fk_pending_vectors_memory",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_pending_vectors_due", "pending_vectors", ["due_us"])

"""Outputs whose sealed chunks are in an object store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "object_stores",
        sa.Column("slot", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("folder", sa.String(64), nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "output_objects",
        sa.Column("pointer", sa.String(64), primary_key=True),
        sa.Column("doomed", sa.Boolean, nullable=False),
    )
    op.create_index("ix_output_objects_doomed", "output_objects", ["doomed"])
    for name in ("object_start", "object_bytes"):
        op.add_column("output_chunks", sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0")))

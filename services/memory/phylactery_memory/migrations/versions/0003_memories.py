"""Memories of users, and their index of words, records and vectors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _owner() -> sa.Column[int]:
    key = sa.ForeignKey("memory_owners.owner_id", ondelete="CASCADE")
    return sa.Column("owner_id", sa.BigInteger, key, primary_key=True)


def upgrade() -> None:
    op.create_table(
        "memory_owners",
        sa.Column("owner_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("last_number", sa.BigInteger, nullable=False),
        sa.Column("memories", sa.BigInteger, nullable=False),
        sa.Column("index_version", sa.String(64), nullable=False),
        sa.UniqueConstraint("tenant", "subject", name="uq_memory_owners"),
    )
    op.create_table(
        "user_memory",
        sa.Column(
            "owner_id", sa.BigInteger, sa.ForeignKey("memory_owners.owner_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("memory_id", sa.String(64), nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("layer", sa.SmallInteger, nullable=False),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("source", sa.SmallInteger, nullable=False),
        sa.Column("trust", sa.SmallInteger, nullable=False),
        sa.Column("lineage", sa.Text, nullable=False),
        sa.Column("importance", sa.Float, nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("about", sa.String(128), nullable=False),
        sa.Column("attribute", sa.String(128), nullable=False),
        sa.Column("valid_us", sa.BigInteger, nullable=False),
        sa.Column("invalid_us", sa.BigInteger, nullable=False),
        sa.Column("supersedes", sa.Text, nullable=False),
        sa.Column("superseded_by", sa.String(64), nullable=False),
        sa.Column("content_hash", sa.String(71), nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("update_us", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("memory_id", name="uq_user_memory_id"),
    )
    op.create_index("ix_user_memory_content", "user_memory", ["owner_id", "content_hash"])
    op.create_index("ix_user_memory_attribute", "user_memory", ["owner_id", "about", "attribute"])
    op.create_table(
        "memory_records",
        sa.Column(
            "owner_id", sa.BigInteger, sa.ForeignKey("memory_owners.owner_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "memory_postings",
        sa.Column(
            "owner_id", sa.BigInteger, sa.ForeignKey("memory_owners.owner_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("term", sa.String(64), primary_key=True),
        sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "memory_vectors",
        sa.Column(
            "owner_id", sa.BigInteger, sa.ForeignKey("memory_owners.owner_id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("model", sa.String(128), primary_key=True),
        sa.Column("block", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )

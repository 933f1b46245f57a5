"""Profiles and erasure records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "profile_owners",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "memory_profile",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("source", sa.SmallInteger, nullable=False),
        sa.Column("trust", sa.SmallInteger, nullable=False),
        sa.Column("lineage", sa.Text, nullable=False),
        sa.Column("memory_id", sa.String(64), nullable=False),
        sa.Column("valid_us", sa.BigInteger, nullable=False),
        sa.Column("invalid_us", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant", "subject"],
            ["profile_owners.tenant", "profile_owners.subject"],
            name="fk_memory_profile_owner",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "erasures",
        sa.Column("erasure_id", sa.String(64), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("subject_hash", sa.String(71), nullable=False),
        sa.Column("salt", sa.String(32), nullable=False),
        sa.Column("request_hash", sa.String(71), nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
    op.create_index("ix_erasures_request", "erasures", ["request_hash"])

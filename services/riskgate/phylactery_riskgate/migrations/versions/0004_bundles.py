"""Bundles: stored files, and the active bundle of each slot."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables, and the two heads that activations lock."""
    op.create_table(
        "bundles",
        sa.Column("hash", sa.String(80), primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("files", sa.LargeBinary, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    heads = op.create_table(
        "bundle_heads",
        sa.Column("slot", sa.String(16), primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(80), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
        sa.Column("signed_by", sa.String(128), nullable=False),
        sa.Column("activate_us", sa.BigInteger, nullable=False),
        sa.Column("activated_by", sa.String(128), nullable=False),
    )
    nothing = {"revision": 0, "hash": "", "source": "", "signed_by": "", "activate_us": 0, "activated_by": ""}
    op.bulk_insert(heads, [{"slot": "live", **nothing}, {"slot": "shadow", **nothing}])

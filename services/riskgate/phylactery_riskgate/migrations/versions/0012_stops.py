"""Freezes, revoked decisions, and the history of active bundles."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables; of earlier bundles, only the active one is known to have decided.

    A head counts its activations from now on, so that a replica can distinguish a rollback from a database that was set
    back.
    """
    op.add_column("decisions", sa.Column("revoke_us", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "freezes",
        sa.Column("scope", sa.String(16), primary_key=True),
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("by_installation", sa.Boolean, primary_key=True),
        sa.Column("freeze_us", sa.BigInteger, nullable=False),
        sa.Column("frozen_by", sa.String(128), nullable=False),
        sa.Column("frozen_by_tenant", sa.String(128), nullable=False),
        sa.Column("reason", sa.String(500), nullable=False),
    )
    op.add_column("bundle_heads", sa.Column("number", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "bundle_activations",
        sa.Column("slot", sa.String(16), primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(80), nullable=False),
        sa.Column("source", sa.String(16), nullable=False),
        sa.Column("signed_by", sa.String(128), nullable=False),
        sa.Column("activate_us", sa.BigInteger, nullable=False),
        sa.Column("activated_by", sa.String(128), nullable=False),
        sa.Column("activated_by_tenant", sa.String(128), nullable=False),
    )
    op.execute(
        "INSERT INTO bundle_activations (slot, number, revision, hash, source, signed_by, activate_us, activated_by,"
        " activated_by_tenant) SELECT slot, 0, revision, hash, source, signed_by, activate_us, activated_by, ''"
        " FROM bundle_heads WHERE revision > 0"
    )

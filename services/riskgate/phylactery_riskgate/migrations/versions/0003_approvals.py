"""Approvals: voter data, and an ordered table of changes for watches."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns and the table of changes. Earlier changes are in no stream, because there were no watches."""
    op.add_column("approvals", sa.Column("version", sa.Integer, nullable=False, server_default="0"))
    op.create_index("approvals_by_call", "approvals", ["tenant", "requester", "tool", "decide_us"])
    op.create_index("approvals_by_asking", "approvals", ["tenant", "requester", "create_us"])
    for column in (
        sa.Column("approver", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("level", sa.String(128), nullable=False, server_default=""),
        sa.Column("groups", sa.LargeBinary, nullable=False, server_default=sa.text("''")),
    ):
        op.add_column("approval_votes", column)
    op.create_table(
        "approval_changes",
        sa.Column("approval_id", sa.String(128), sa.ForeignKey("approvals.id"), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("votes", sa.Integer, nullable=False),
        sa.Column("decide_us", sa.BigInteger, nullable=False),
        sa.Column("decided_by", sa.String(128), nullable=False),
        sa.Column("closed_reason", sa.String(32), nullable=False),
        sa.Column("change_us", sa.BigInteger, nullable=False),
    )
    op.create_index("approval_changes_in_order", "approval_changes", ["tenant", "position"])

"""Submissions of forms, each under an id of its own, with the answers sealed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_form_submissions",
        sa.Column("submission_id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("user_id", sa.String(128), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("form", sa.String(64), nullable=False),
        sa.Column("version", sa.String(71), nullable=False),
        sa.Column("answers", sa.LargeBinary, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "agent_form_submissions_by_tenant", "agent_form_submissions", ["tenant", "created_us", "submission_id"]
    )
    op.create_index("agent_form_submissions_by_user", "agent_form_submissions", ["tenant", "user_id"])
    op.create_index("agent_form_submissions_by_age", "agent_form_submissions", ["created_us"])

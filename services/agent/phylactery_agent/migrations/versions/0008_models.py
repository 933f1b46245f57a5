"""What models answered, once for every call of a run, and what a run has used of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("model_calls", "tokens", "cost_micros"):
        op.add_column("agent_runs", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "agent_model_calls",
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("key", sa.String(128), primary_key=True),
        sa.Column("request_hash", sa.String(71), nullable=False),
        sa.Column("reply", sa.LargeBinary, nullable=True),
        sa.Column("model", sa.String(256), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.Column("cost_micros", sa.BigInteger, nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("created_us", sa.BigInteger, nullable=False),
    )

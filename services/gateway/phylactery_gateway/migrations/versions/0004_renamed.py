"""How often the identity of a person changed, and how often the agent was told, so that no lift outlasts a change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("renamed", "renamed_told"):
        op.add_column("users", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))

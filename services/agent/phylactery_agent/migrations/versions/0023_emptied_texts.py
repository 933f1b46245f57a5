"""The hash of each output, which outlives it, and which messages have had their text emptied.

Texts stored before in clear are sealed by the agent when it starts: the key is outside the database.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("agent_tool_calls", sa.Column("output_hash", sa.String(71), nullable=False, server_default=""))
    op.add_column("agent_inbox", sa.Column("text_erased", sa.Boolean, nullable=False, server_default=sa.false()))
    readable = sa.text("state = 'handled' AND NOT text_erased")
    op.create_index(
        "agent_inbox_texts", "agent_inbox", ["handled_us"], sqlite_where=readable, postgresql_where=readable
    )

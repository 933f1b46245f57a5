"""What of an effect can be taken back, and whether the person was told of one that ran without a question.

Effects from before are none of either.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, length in (("turn_id", 128), ("undo", 64), ("undone_by", 128), ("object_id", 128), ("told", 64)):
        op.add_column("agent_tool_calls", sa.Column(name, sa.String(length), nullable=False, server_default=""))
    of_user = ["tenant", "user_id", "created_us"]
    for name, which in (("agent_tool_calls_kept", "undo = 'kept'"), ("agent_tool_calls_owed", "told = 'owed'")):
        op.create_index(name, "agent_tool_calls", of_user, sqlite_where=sa.text(which), postgresql_where=sa.text(which))

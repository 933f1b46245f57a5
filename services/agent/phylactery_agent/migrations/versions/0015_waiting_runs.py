"""Several runs of a thread may wait for a person, each with its own checkpoints; one of a thread is executed at a time.

The checkpoints of a run lie under its own id, no longer under its thread's: a run that waits keeps them while another
one of the thread is served. What stands on the card of a waiting run is in its row, so that an answer finds its run.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TABLES = ("agent_checkpoints", "agent_checkpoint_blobs", "agent_checkpoint_writes")


def upgrade() -> None:
    op.add_column("agent_runs", sa.Column("card", sa.Text, nullable=False, server_default="[]"))
    active = sa.text("status IN ('queued', 'running', 'suspended')")
    for table in _TABLES:  # until now a thread had one such run at most
        its_run = f"SELECT run_id FROM agent_runs WHERE thread_key = {table}.thread_id AND {active}"  # noqa: S608
        theirs = f"SELECT thread_key FROM agent_runs WHERE {active}"  # noqa: S608
        op.execute(f"UPDATE {table} SET thread_id = ({its_run}) WHERE thread_id IN ({theirs})")  # noqa: S608
        op.execute(f"DELETE FROM {table} WHERE thread_id IN (SELECT thread_key FROM agent_threads)")  # noqa: S608
    op.drop_index("agent_runs_one_active", "agent_runs")
    op.create_index("agent_runs_active", "agent_runs", ["thread_key"], sqlite_where=active, postgresql_where=active)
    served = sa.text("status IN ('queued', 'running')")
    op.create_index(
        "agent_runs_one_served", "agent_runs", ["thread_key"], unique=True, sqlite_where=served, postgresql_where=served
    )

"""Whose effects changed files, for the move of files of releases up to 0.2 to the people who wrote them."""

from __future__ import annotations

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.runtime.storage.schema import RUNS, TOOL_CALLS
from phylactery_agent.tools.executor import Executor, FileEffect
from phylactery_agent.tools.specs import UNDO_WRITE, WRITE_FILE

_log = get_logger("workspaces")


async def move_former_files(executor: Executor, database: Database) -> None:
    """Move former files to the people whose they are known to be, and name what is left. Raise Unavailable, OSError."""
    former = executor.former_files
    if not former.folders():
        return
    calls = sa.select(RUNS.c.tenant, RUNS.c.user_id, TOOL_CALLS.c.effect_key).join_from(
        TOOL_CALLS, RUNS, RUNS.c.run_id == TOOL_CALLS.c.run_id
    )
    query = calls.where(TOOL_CALLS.c.tool.in_([WRITE_FILE.name, UNDO_WRITE.name]), TOOL_CALLS.c.effect_key != "")
    former.move_known(await database.read(lambda connection: [FileEffect(*row) for row in connection.execute(query)]))
    for one in former.folders():
        _log.warning(
            "files that a tenant's people shared until 0.2 are kept where only you reach them: nobody is known to have "
            "written them alone. Give them to somebody, or share the folder in AGENT_SANDBOX_SHARED",
            folder=str(one.path),
            files=len(one.files),
            give=f"python -m phylactery_agent workspaces give {one.path.name} USER",
        )

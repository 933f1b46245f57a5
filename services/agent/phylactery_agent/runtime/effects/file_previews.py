"""What a person is shown of a file before they answer whether it is sent or replaced: its size, type and beginning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database

from phylactery_agent.media.sniffing import content_types, decoded
from phylactery_agent.ports import ApprovalInfo, GateArgument
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.storage.schema import TOOL_CALLS
from phylactery_agent.tools.executor import Executor
from phylactery_agent.tools.specs import SEND_FILE, WRITE_FILE
from phylactery_agent.tools.specs.shown import printable

REPLACED: Final = "/file/replaced"
"""The argument that a card names for the size in bytes of the file that a call replaces."""
_LINES: Final = 3
_CHARACTERS: Final = 200
_BREAK: Final = " ⏎ "
"""Between lines: they are shown as one, so that none of them passes for a line of the card."""


class FilePreviews:
    """Reader of the files that waiting calls would send or replace."""

    def __init__(self, database: Database, executor: Executor) -> None:
        self._database, self._executor = database, executor

    async def of(self, owner: Owner, info: ApprovalInfo) -> Sequence[GateArgument]:
        """Return what the card says besides about a call's file; nothing for a call that sends and replaces none.

        Of a file that is sent, the content is described that was bound when the call was proposed, which alone can be
        sent. Of one that is replaced, the size is told that it has now.
        """
        path = _path(info)
        if not path:
            return ()
        if info.tool == WRITE_FILE.name:
            replaced = await self._executor.file_to_replace(owner.tenant, owner.user_id, path)
            return (GateArgument(REPLACED, f"{json.loads(replaced)['size']:,}"),) if replaced else ()
        query = sa.select(TOOL_CALLS.c.content_hash).where(
            TOOL_CALLS.c.run_id == info.run_id, TOOL_CALLS.c.tool_call_id == info.tool_call_id
        )
        bound = await self._database.read(lambda connection: connection.execute(query).scalar())
        data = await self._executor.sent_content(owner.tenant, owner.user_id, path, bound) if bound else None
        if data is None:
            return (GateArgument("/file", json.dumps("missing, or changed since")),)
        types = sorted(content_types(data))
        found = [("/file/bytes", f"{len(data):,}"), ("/file/type", json.dumps(types[-1] if types else "unknown"))]
        text = decoded(data) if types == ["text/csv", "text/plain"] else None
        if text is not None:
            found.append(("/file/begins", json.dumps(beginning(text), ensure_ascii=False)))
        return tuple(GateArgument(name, value) for name, value in found)


def beginning(text: str) -> str:
    """Return the first lines of a text in one line, with nothing that is invisible or moves what stands beside it."""
    lines = [" ".join(line.split()) for line in text[: 20 * _CHARACTERS].splitlines() if line.strip()]
    shown = printable(_BREAK.join(lines[:_LINES]))
    return shown if len(shown) <= _CHARACTERS and len(lines) <= _LINES else f"{shown[:_CHARACTERS]}…"


def _path(info: ApprovalInfo) -> str:
    shown_as = {one.path: one.display for one in info.arguments}
    if info.tool != SEND_FILE.name and (info.tool != WRITE_FILE.name or shown_as.get("/append") == "true"):
        return ""
    shown = shown_as.get("/path", '""')
    try:
        path = json.loads(shown)
    except ValueError:  # cut, so it is no path that exists
        return ""
    return path if isinstance(path, str) else ""

"""A hook on a database's statements just before they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import sqlalchemy as sa
from phylactery_chassis.db import pending_statements, statements
from sqlalchemy.engine import Connection, Engine

See = Callable[[Connection, str, Any], None]
"""Called with a connection, a statement and its values."""


@contextmanager
def watched(engine: Engine, see: See) -> Iterator[None]:
    """Call ``see`` for every statement on an engine during the block, also those that bypass SQLAlchemy.

    Statements queued for a server are the exception.
    """
    run = pending_statements.run_text

    def note(connection: Connection, _cursor: Any, statement: str, values: Any, *_rest: Any) -> None:
        see(connection, statement, values)

    def past(connection: Connection, text: str, values: Any = ()) -> Any:
        if connection.engine.pool is engine.pool:
            see(connection, text, values)
        return run(connection, text, values)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        with patch.object(pending_statements, "run_text", past), patch.object(statements, "run_text", past):
            yield
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)

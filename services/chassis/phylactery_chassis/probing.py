"""What a database is asked to see whether it works."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from phylactery_chassis.driver import run_text


def look(connection: Connection) -> None:
    """Asks for nothing but an answer."""
    run_text(connection, "SELECT 1").close()


def write_something(connection: Connection) -> None:
    """Writes what changes nothing: the number in a file's head as it is, or a transaction's own record at a server.

    A transaction that changes nothing at all works on a full disk too.
    """
    if connection.dialect.name == "sqlite":
        number = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        connection.exec_driver_sql(f"PRAGMA user_version = {number}").close()
    else:
        connection.exec_driver_sql("SELECT txid_current()").close()

"""Schema migrations: one set of Alembic revisions per service for both stores, each with its own version table."""

from __future__ import annotations

import os
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.errors import StartError

if TYPE_CHECKING:
    from alembic.config import Config

_ADVISORY_LOCK = 0x70687973
"""A lock for all processes that start on one database: of four concurrent starts, three failed without it."""


class SchemaError(StartError):
    """The database's schema does not match this version of the program; the message says what to do."""


def upgrade(engine: Engine, package: str, *, apply: bool) -> None:
    """Migrate the schema to the newest revision of <package>.migrations in one transaction.

    With apply=False only compare. Raise SchemaError if the schema is newer than the code, or older and apply is False.
    """
    with as_file(files(package) / "migrations" / "versions") as versions, engine.begin() as connection:
        dialect_of(connection).lock(connection, _ADVISORY_LOCK)
        table = f"{package}_version"
        current, newest = _current(connection, table), newest_revision(versions)
        if current == newest:
            return
        if current is not None and current not in _revisions(versions):
            raise SchemaError(
                f"the database of {package} is at revision {current}, newer than this program knows; "
                "start the newer program, or restore a backup of the older data"
            )
        if not apply:
            found = "has no tables yet" if current is None else f"is at revision {current}, not {newest}"
            raise SchemaError(f"the database of {package} {found}; run: python -m {package} migrate")
        from alembic import command  # late: most starts have nothing to migrate, and the import is a sixth of a start

        config = _config(versions)
        config.attributes.update(connection=connection, version_table=table)
        command.upgrade(config, "head")


def newest_revision(versions: Path) -> str:
    """Return the newest revision in a folder. A revision is the number that begins its file name: 0003_logs.py."""
    return max(_revisions(versions))


def _revisions(versions: Path) -> set[str]:
    return {path.name.partition("_")[0] for path in versions.glob("[0-9]*_*.py")}


def _current(connection: Connection, table: str) -> str | None:
    """Return the current revision of a database, None if it has none."""
    if not sa.inspect(connection).has_table(table):
        return None
    return connection.execute(sa.select(sa.column("version_num")).select_from(sa.table(table))).scalar()


def _config(versions: Path) -> Config:
    from alembic.config import Config

    config = Config()
    for option, path in (("script_location", Path(__file__).parent), ("version_locations", versions)):
        config.set_main_option(option, str(path).replace("%", "%%"))
    config.set_main_option("path_separator", "os" if os.pathsep not in str(versions) else "newline")
    return config

"""Schema migrations: one set of Alembic revisions per service for both stores, and one version table each."""

from __future__ import annotations

import os
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from phylactery_chassis.errors import StartError

if TYPE_CHECKING:
    from alembic.config import Config

_ADVISORY_LOCK = 0x70687973
"""One lock for all starters of one database: of four at once, three failed without."""


class SchemaError(StartError):
    """The database's schema is not the one this version needs; the message says what to do."""


def upgrade(engine: Engine, package: str, *, apply: bool) -> None:
    """Bring the schema to the newest revision of <package>.migrations in one transaction.

    apply=False only compares. Raise SchemaError when the schema is older than the code then, or newer in any case.
    """
    with as_file(files(package) / "migrations" / "versions") as versions, engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
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
            raise SchemaError(
                f"the database of {package} is at revision {current}, not {newest}; run: python -m {package} migrate"
            )
        from alembic import command  # late: most starts have nothing to change, and it is a sixth of a start

        config = _config(versions)
        config.attributes.update(connection=connection, version_table=table)
        command.upgrade(config, "head")


def newest_revision(versions: Path) -> str:
    """Return the newest revision in a folder: a revision is the number its file begins with, 0003 of 0003_logs.py."""
    return max(_revisions(versions))


def _revisions(versions: Path) -> set[str]:
    return {path.name.partition("_")[0] for path in versions.glob("[0-9]*_*.py")}


def _current(connection: Connection, table: str) -> str | None:
    """Return the revision a database is at, None where it is at none."""
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

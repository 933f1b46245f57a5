"""Schema migrations: one set of Alembic revisions per service for both stores, and one version table each."""

from __future__ import annotations

import os
from importlib.resources import as_file, files
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

from phylactery_chassis.errors import StartError

_ADVISORY_LOCK = 0x70687973
"""One lock for all starters of one database: of four at once, three failed without."""


class SchemaError(StartError):
    """The database's schema is not the one this version needs; the message says what to do."""


def upgrade(engine: Engine, package: str, *, apply: bool) -> None:
    """Brings the schema to the newest revision of <package>.migrations in one transaction.

    apply=False only compares. Raises SchemaError when the schema is older than the code then, or newer in any case.
    """
    with as_file(files(package) / "migrations" / "versions") as versions, engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        config = _config(versions)
        script = ScriptDirectory.from_config(config)
        table = f"{package}_version"
        current = MigrationContext.configure(connection, opts={"version_table": table}).get_current_revision()
        head = script.get_current_head()
        if current == head:
            return
        if current is not None and current not in {revision.revision for revision in script.walk_revisions()}:
            raise SchemaError(
                f"the database of {package} is at revision {current}, newer than this program knows; "
                "start the newer program, or restore a backup of the older data"
            )
        if not apply:
            raise SchemaError(
                f"the database of {package} is at revision {current}, not {head}; run: python -m {package} migrate"
            )
        config.attributes.update(connection=connection, version_table=table)
        command.upgrade(config, "head")


def _config(versions: Path) -> Config:
    config = Config()
    for option, path in (("script_location", Path(__file__).parent), ("version_locations", versions)):
        config.set_main_option(option, str(path).replace("%", "%%"))
    config.set_main_option("path_separator", "os" if os.pathsep not in str(versions) else "newline")
    return config

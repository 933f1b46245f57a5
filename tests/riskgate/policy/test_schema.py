"""The migrations create exactly the tables the stores declare."""

from __future__ import annotations

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from phylactery_riskgate.store.tables import METADATA


async def test_the_migrated_schema_is_the_declared_one(gate):
    with gate.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "phylactery_riskgate_version"})
        assert compare_metadata(context, METADATA) == []

"""The schema revision read without Alembic agrees with Alembic."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.migrations import _config, _revisions, newest_revision

from tests.support.cases import each_case

PACKAGES = ("phylactery_agent", "phylactery_memory", "phylactery_riskgate")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_revision_is_the_number_its_file_begins_with(package: str):
    with as_file(files(package) / "migrations" / "versions") as versions:
        script = ScriptDirectory.from_config(_config(versions))
        assert newest_revision(versions) == script.get_current_head()
        assert _revisions(versions) == {revision.revision for revision in script.walk_revisions()}


@pytest.mark.slow
def test_a_start_over_a_database_that_is_up_to_date_does_without_alembic(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    program = (
        "import sys; from phylactery_chassis.db.database import Database\n"
        f"database = Database({url!r}); database.migrate('phylactery_memory'); database.close()\n"
        "print('alembic' in sys.modules)\n"
    )
    said = [subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout]
    said += [subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout]
    assert said == ["True\n", "False\n"]
    database = Database(url)
    try:
        assert "outputs" in sa.inspect(database.engine).get_table_names()
    finally:
        database.close()


REVISIONS = sorted(Path(__file__).parents[3].glob("services/*/*/migrations/versions/*.py"))


@each_case("revision", REVISIONS, ids=[f"{one.parts[-4]}-{one.stem}" for one in REVISIONS])
def test_a_revision_imports_nothing_that_later_versions_may_change(revision: Path) -> None:
    imported = [
        getattr(node, "module", None) or node.names[0].name
        for node in ast.walk(ast.parse(revision.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not [name for name in imported if name.startswith("phylactery")]

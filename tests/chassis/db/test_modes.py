"""Who may read a service's files: their owner, and nobody else."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import ClassVar

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.settings import ServiceSettings


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in folder.iterdir() if path.is_file()}


def fill(database: Database) -> None:
    def work(connection: sa.Connection) -> None:
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS t (a INTEGER)"))
        connection.execute(sa.text("INSERT INTO t VALUES (1)"))

    database.write_sync(work)


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_the_file_of_a_database_and_its_log_are_private_whatever_the_mask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        database = Database(f"sqlite:///{tmp_path}/own.db")
        fill(database)
        assert modes(tmp_path) == dict.fromkeys(("own.db", "own.db-wal", "own.db-shm"), "0o600")
        database.close()
    finally:
        os.umask(before)


def test_files_that_others_could_read_are_made_private_while_they_are_in_use(tmp_path: Path) -> None:
    """A file that is opened and closed beside SQLite would lose the locks that the process has on it."""
    path = tmp_path / "own.db"
    first = Database(f"sqlite:///{path}")
    fill(first)
    for one in tmp_path.iterdir():
        one.chmod(0o644)
    with sqlite3.connect(path, isolation_level=None) as writer:
        writer.execute("BEGIN IMMEDIATE")
        second = Database(f"sqlite:///{path}")
        assert second.read_sync(lambda connection: connection.execute(sa.text("SELECT count(*) FROM t")).scalar()) == 1
        with sqlite3.connect(path, timeout=0, isolation_level=None) as other:  # noqa: SIM117
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
        writer.execute("COMMIT")
    assert set(modes(tmp_path).values()) == {"0o600"}
    for database in (first, second):
        database.close()


class _Own(ServiceSettings):
    service: ClassVar[str] = "own"


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o770, 0o700), (0o2750, 0o2700), (0o1777, 0o1777)])
def test_the_data_folder_is_private_unless_it_is_everybodys(tmp_path: Path, before: int, after: int) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(before)
    _Own(data_dir=folder).prepare()
    assert stat.S_IMODE(folder.stat().st_mode) == after

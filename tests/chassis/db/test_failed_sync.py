"""A failed fsync, through a real SQLite VFS: uncertainty ends all writing."""

from __future__ import annotations

import pytest
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import Unavailable

from tests.support.databases.power import Disk


def opened(tmp_path, disk):
    database = Database(f"sqlite+power:///{tmp_path / 'd.db'}?disk={disk.name}")
    database.write_sync(lambda c: c.exec_driver_sql("CREATE TABLE IF NOT EXISTS kept (number INTEGER)"))
    return database


async def put(database, number):
    await database.write(lambda c: c.exec_driver_sql(f"INSERT INTO kept VALUES ({number})"))


async def numbers(database):
    return await database.read(lambda c: list(c.exec_driver_sql("SELECT number FROM kept ORDER BY number").scalars()))


async def test_after_a_failed_sync_nothing_is_written_until_the_next_start(tmp_path):
    disk = Disk("chassis-failing")
    database = opened(tmp_path, disk)
    await put(database, 1)
    disk.fail_syncs = True
    with pytest.raises(Unavailable):
        await put(database, 2)
    disk.fail_syncs = False
    for number in (3, 4):
        with pytest.raises(Unavailable, match="check the disk, then restart the service") as caught:
            await put(database, number)
        assert caught.value.reason == "STORE_UNAVAILABLE"
    with pytest.raises(Unavailable, match="check the disk"):
        database.write_sync(lambda c: c.exec_driver_sql("INSERT INTO kept VALUES (5)"))
    assert not database.healthy
    assert not await database.probe()
    assert await numbers(database) == [1]
    database.close()
    again = opened(tmp_path, disk)
    await put(again, 6)
    assert set(await numbers(again)) - {2} == {1, 6}  # what was in doubt may be there
    again.close()


async def test_a_sync_that_fails_while_the_log_is_emptied_ends_writing_too(tmp_path):
    disk = Disk("chassis-checkpoint")
    database = opened(tmp_path, disk)
    await put(database, 1)
    disk.fail_syncs = True

    def empty_the_log(connection) -> None:
        connection.exec_driver_sql("COMMIT")
        try:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.exec_driver_sql("BEGIN")

    with pytest.raises(Unavailable):
        await database.read(empty_the_log)
    disk.fail_syncs = False
    with pytest.raises(Unavailable, match="check the disk"):
        await put(database, 2)
    assert await numbers(database) == [1]
    database.close()

"""A disk that loses power: SQLite over a VFS that tracks synced writes, and a driver for it.

Writes go to real files. The content as of each file's last sync is kept separately; a power cut returns it with any of
the writes since then, whole or torn, because a disk may keep some unsynced writes.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

SECTOR = 512


class Disk(apsw.VFS):
    """The VFS. on_step is called before each write and each sync, as a point where power may fail.

    With fail_syncs, syncs keep nothing and report failure; room is the number of bytes its files may still grow by.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.synced: dict[str, bytes] = {}
        self.unsynced: dict[str, list[tuple[int, bytes | None]]] = {}
        self.on_step: Callable[[], None] = lambda: None
        self.fail_syncs = False
        self.room: int | None = None
        super().__init__(name, base="")

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:
        if name is None:  # a statement journal: it belongs to no transaction and is lost without power
            return apsw.VFSFile("", None, flags)
        file = _File(self, name, flags)
        if file.path not in self.synced:  # content from before is on the disk
            self.synced[file.path] = Path(file.path).read_bytes()
        self.unsynced.setdefault(file.path, [])
        return file

    def xDelete(self, path: str, sync_dir: bool) -> None:
        super().xDelete(path, sync_dir)
        self.synced.pop(path, None)
        self.unsynced.pop(path, None)

    def cut(self, dice: random.Random, keeps: Sequence[float] = (0.0, 0.5, 0.9)) -> dict[str, bytes]:
        """Return the files as they may be after a power cut; ``keeps`` are the probabilities of unsynced writes."""
        return {Path(path).name: self._left(path, dice, keeps) for path in self.synced if not path.endswith("-shm")}

    def _left(self, path: str, dice: random.Random, keeps: Sequence[float]) -> bytes:
        left = bytearray(self.synced[path])
        keep = dice.choice(keeps)
        for offset, data in self.unsynced[path]:
            if dice.random() >= keep:
                continue
            if data is None:
                del left[offset:]
                continue
            torn = data[: dice.randrange(0, len(data), SECTOR)] if dice.random() < 0.2 else data
            left.extend(b"\0" * (offset - len(left)))
            left[offset : offset + len(torn)] = torn
        return bytes(left)


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: Any) -> None:
        self.disk = disk
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.disk.on_step()
        if self.disk.room is not None:
            grows = max(0, offset + len(data) - self.xFileSize())
            if grows > self.disk.room:
                raise _fault(apsw.FullError, sqlite3.SQLITE_FULL)
            self.disk.room -= grows
        super().xWrite(data, offset)
        self.disk.unsynced[self.path].append((offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self.disk.unsynced[self.path].append((size, None))

    def xSync(self, flags: int) -> None:
        self.disk.on_step()
        if self.disk.fail_syncs:
            raise _fault(apsw.IOError, sqlite3.SQLITE_IOERR_FSYNC)
        super().xSync(flags)
        self.disk.synced[self.path] = Path(self.path).read_bytes()
        self.disk.unsynced[self.path].clear()


class _Cursor:
    """A DB-API cursor over apsw's."""

    def __init__(self, connection: _Connection) -> None:
        self._cursor, self._apsw = connection.apsw.cursor(), connection.apsw
        self.description: Sequence[Any] | None = None
        self.rowcount, self.arraysize, self._rows = -1, 1, iter(())
        self._cursor.exec_trace = self._describe

    def execute(self, text: str, values: Sequence[Any] = ()) -> _Cursor:
        try:
            before = self._apsw.total_changes()
            self._cursor.execute(text, tuple(values))
            self._rows = iter(list(self._cursor))
            self.rowcount = self._apsw.total_changes() - before
        except apsw.Error as error:
            raise _as_sqlite(error) from error
        return self

    def _describe(self, cursor: apsw.Cursor, _text: str, _values: Any) -> bool:
        """Store the columns early: apsw forgets those of a statement without rows."""
        columns = cursor.get_description()
        self.description = [(name, None, None, None, None, None, None) for name, _ in columns] or None
        return True

    def executemany(self, text: str, many: Sequence[Sequence[Any]]) -> _Cursor:
        for values in many:
            self.execute(text, values)
        return self

    @property
    def lastrowid(self) -> int:
        return int(self._apsw.last_insert_rowid())

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def fetchmany(self, size: int = 1) -> list[Any]:
        return [row for row, _ in zip(self._rows, range(size), strict=False)]

    def close(self) -> None:
        self._cursor.close()


class _Connection:
    """A DB-API connection over apsw's."""

    def __init__(self, path: str, disk: str) -> None:
        self.apsw = apsw.Connection(path, vfs=disk)
        self.isolation_level: str | None = None

    def cursor(self) -> _Cursor:
        return _Cursor(self)

    def execute(self, text: str, values: Sequence[Any] = ()) -> _Cursor:
        return self.cursor().execute(text, values)

    def create_function(self, *_args: Any, **_options: Any) -> None:
        """No-op: nothing here needs one."""

    def commit(self) -> None:
        if self.apsw.in_transaction:
            self.execute("COMMIT")

    def rollback(self) -> None:
        if self.apsw.in_transaction:
            self.execute("ROLLBACK")

    def close(self) -> None:
        self.apsw.close()


def _fault(kind: type[apsw.Error], code: int) -> apsw.Error:
    error = kind("the disk of this test")
    error.extendedresult = code
    return error


def _as_sqlite(error: apsw.Error) -> sqlite3.Error:
    kind = sqlite3.IntegrityError if isinstance(error, apsw.ConstraintError) else sqlite3.OperationalError
    as_sqlite = kind(str(error))
    as_sqlite.sqlite_errorcode = getattr(error, "extendedresult", 0)
    return as_sqlite


class Dialect(SQLiteDialect_pysqlite):
    """The dialect sqlite+power:///path?disk=name: SQLite on the disk of that name."""

    driver = "power"
    supports_statement_cache = True

    def create_connect_args(self, url: Any) -> Any:
        return [url.database, url.query["disk"]], {}

    def connect(self, *args: Any, **_options: Any) -> Any:
        return _Connection(*args)

    def on_connect(self) -> None:
        return None


registry.register("sqlite.power", __name__, "Dialect")

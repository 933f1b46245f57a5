"""Columns whose values are sealed in the store and readable in the process, for every statement over them.

They are types of SQLAlchemy, so a statement cannot forget to seal: a value is sealed when it is bound and opened when
its row is read. An empty value stays empty, which tells that there is nothing. A sealed value equals no other, so it
cannot be compared in SQL. A value that an earlier version stored in clear is read as it is, until it is sealed.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import sqlalchemy as sa

from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DataLoss
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crypto import Box

_MARK: Final = b"\x00sealed1\x00"
_TEXT_MARK: Final = "sealed1:"
_BOX: Final = "phylactery_box"

_log = get_logger("sealed")


def seal_under(database: Database, box: Box) -> None:
    """Seal and open the values of sealed columns of a database under a key. Do it before the first such statement."""
    setattr(database.engine.dialect, _BOX, box)


class _Sealed:
    """What both types do: ``place`` names the column, and a value opens in no other."""

    place: bytes

    def _box(self, dialect: sa.Dialect) -> Box:
        box: Box | None = getattr(dialect, _BOX, None)
        if box is None:
            raise RuntimeError(f"there is no key for {self.place.decode()}: call seal_under with the database first")
        return box

    def _open(self, sealed: bytes, dialect: sa.Dialect) -> bytes:
        plain = self._box(dialect).open(sealed, self.place)
        if plain is None:
            raise DataLoss(
                "INTERNAL",
                f"a value of {self.place.decode()} cannot be unsealed; restore the key file of this database",
            )
        return plain


class SealedBytes(sa.TypeDecorator[bytes], _Sealed):
    """Bytes, or NULL."""

    impl = sa.LargeBinary
    cache_ok = True

    def __init__(self, place: str, *, lost: bytes | None = None) -> None:
        """``lost`` is what a value reads as that cannot be unsealed, so that it keeps nobody from the rest of its row.

        That is logged; without ``lost`` the statement fails.
        """
        super().__init__()
        self.place, self.lost = place.encode(), lost

    def process_bind_param(self, value: bytes | None, dialect: sa.Dialect) -> bytes | None:
        """Return a value as it is stored."""
        return _MARK + self._box(dialect).seal(value, self.place) if value else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> bytes | None:
        """Return a stored value. Raise DataLoss if it cannot be unsealed and nothing says what is read instead."""
        stored: bytes | None = None if value is None else bytes(value)
        if stored is None or not stored.startswith(_MARK):
            return stored
        try:
            return self._open(stored[len(_MARK) :], dialect)
        except DataLoss:
            if self.lost is None:
                raise
            _log.error("a value cannot be unsealed; it is read as empty", column=self.place.decode())
            return self.lost


class SealedText(sa.TypeDecorator[str], _Sealed):
    """Text, or NULL, sealed within a column of texts: its type stays what it was when it held them in clear."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place.encode()

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Return a value as it is stored."""
        if not value:
            return value
        return _TEXT_MARK + base64.b64encode(self._box(dialect).seal(value.encode(), self.place)).decode()

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Return a stored value. Raise DataLoss if it cannot be unsealed."""
        if value is None or not value.startswith(_TEXT_MARK):
            return value
        return self._open(base64.b64decode(value[len(_TEXT_MARK) :]), dialect).decode()


def in_clear(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the condition that a sealed column holds a value in clear."""
    text = isinstance(column.type, SealedText)
    mark: Any = _TEXT_MARK if text else _MARK
    kind: Any = sa.Text() if text else sa.LargeBinary()
    stored = sa.type_coerce(column, kind)
    empty = sa.literal("" if text else b"", kind)
    return sa.and_(stored != empty, sa.func.substr(stored, 1, len(mark), type_=kind) != sa.literal(mark, kind))

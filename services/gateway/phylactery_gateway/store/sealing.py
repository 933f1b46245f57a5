"""Sealing of what people write and are told, for as long as it is stored: no text is in a table in clear.

A text is sealed until the agent, or the channel, has it, and emptied in the transaction that records this. The key is a
file beside the database, or one that is named in GATEWAY_SEAL_KEY_FILE; each connection of the database carries it.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import StartError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crypto import (
    KEY_BYTES,
    OTHERS,
    OTHERS_WRITE,
    Box,
    ExposedKeyError,
    create_key_file,
    hmac_sha256,
    read_key_file,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.tables import marks

KEY_FILE: Final = "seal.key"
SEALED: Final = b"\x00seal1\x00\x00\x00"
"""What a sealed text begins with; rows of a gateway of before do not."""
_OPTION: Final = "gateway_sealer"
_MARK: Final = "seal_key"

_log = get_logger("sealing")


class Sealer:
    """The encryption of texts in the gateway's database."""

    def __init__(self, secret: bytes) -> None:
        """Take 32 secret bytes, uniformly random; the keys are made of them."""
        self._box = Box(hmac_sha256(secret, b"phylactery gateway: texts"))
        self._names = hmac_sha256(secret, b"phylactery gateway: hashes")

    @classmethod
    def from_file(cls, folder: Path, file: Path | None) -> Sealer:
        """Read the named file, or <folder>/seal.key, which is created with mode 0600. Raise StartError."""
        path = file or folder / KEY_FILE
        try:
            if file is None:
                create_key_file(path, lambda: secrets.token_bytes(KEY_BYTES))
            secret = read_key_file(path, forbidden=OTHERS if file is None else OTHERS_WRITE)
        except ExposedKeyError as error:
            raise StartError(str(error)) from None
        except OSError as error:
            raise StartError(
                f"{path}: the key of the stored texts cannot be used ({error.strerror}); give the gateway the right "
                "to, or name its file in GATEWAY_SEAL_KEY_FILE"
            ) from None
        if len(secret) != KEY_BYTES:
            raise StartError(f"{path} is no key: it must hold exactly {KEY_BYTES} bytes; restore it from a backup")
        return cls(secret)

    @property
    def options(self) -> dict[str, object]:
        """What a Database takes, so that its connections carry this."""
        return {_OPTION: self}

    @property
    def fingerprint(self) -> str:
        """Return an identifier of the key that reveals nothing else about it."""
        return self.digest(b"which key")

    def digest(self, data: bytes) -> str:
        """Return a keyed hash: who has no key cannot try what was hashed."""
        return hmac_sha256(self._names, data).hex()

    def seal(self, text: bytes, place: str) -> bytes:
        """Return a text, encrypted and bound to its column and row; an empty one stays empty."""
        return SEALED + self._box.seal(text, place.encode()) if text else b""

    def open(self, sealed: bytes, place: str) -> bytes | None:
        """Return a text, None if it was altered, moved, or sealed under another key."""
        sealed = bytes(sealed)
        if not sealed:
            return b""
        text = self._box.open(sealed.removeprefix(SEALED), place.encode()) if sealed.startswith(SEALED) else None
        if text is None:
            _log.error("a stored text cannot be opened; it is treated as empty", place=place)
        return text


def sealer_of(connection: Connection) -> Sealer:
    """Return the sealer that a connection carries."""
    found = connection.get_execution_options()[_OPTION]
    assert isinstance(found, Sealer)
    return found


def note_key(database: Database) -> None:
    """Note which key the texts are sealed with, or verify it. Raise StartError for another."""

    def work(connection: Connection) -> bool:
        own = sealer_of(connection).fingerprint
        connection.execute(insert(marks).values(name=_MARK, value=own).on_conflict_do_nothing())
        return bool(connection.execute(sa.select(marks.c.value).where(marks.c.name == _MARK)).scalar_one() == own)

    if not database.write_sync(work):
        raise StartError(
            "the stored texts are sealed with another key: restore the key from a backup, or name its file in "
            "GATEWAY_SEAL_KEY_FILE, which all gateways over one database share; if it is lost for good, stop all of "
            "them and run: python -m phylactery_gateway forget-sealed, which gives up every message that is not "
            "delivered yet"
        )


def forget_key(connection: Connection) -> None:
    """Forget which key the texts are sealed with, in the transaction that empties all of them."""
    connection.execute(sa.delete(marks).where(marks.c.name == _MARK))

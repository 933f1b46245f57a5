"""Encryption keys of outputs: one data key per user, wrapped by the service's master key.

Erasing a user's row of user_keys erases what was sealed under it, in backups too. The master key is in a separate file,
named by MEMORY_MASTER_KEY_FILE or created at the first start in <data_dir>/keys: one key per line, 32 bytes in
base64url. The first one wraps; the others unwrap what they wrapped before.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import StartError, Unavailable
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crypto import (
    KEY_BYTES,
    OTHERS_WRITE,
    Box,
    ExposedKeyError,
    create_key_file,
    read_key_file,
)
from phylactery_chassis.util.ids import new_id

from phylactery_memory.keys.store import KeyStore, UserKey
from phylactery_memory.outputs.sealing import Opener, Unsealed, Vault

_log = get_logger("keys")
MASTER_FILE = "master.key"


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A user's data key, unwrapped."""

    key_id: str
    vault: Vault


class MasterKeys:
    """The master keys of a service; the first one wraps."""

    def __init__(self, keys: list[bytes]) -> None:
        """``keys`` has at least one key of 32 bytes."""
        self._boxes = {master_key_id(key): Box(key) for key in keys}
        self.active_id = master_key_id(keys[0])

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all keys."""
        return frozenset(self._boxes)

    def wrap(self, owner: Principal, key_id: str, key: bytes) -> bytes:
        """Return a data key wrapped by the active key."""
        return self._boxes[self.active_id].seal(key, _place(owner, key_id))

    def rewrap(self, owner: Principal, row: UserKey) -> bytes | None:
        """Return a data key rewrapped by the active key, None if it was altered. Raise Unavailable."""
        key = self.unwrap(owner, row)
        return None if key is None else self.wrap(owner, row.key_id, key)

    def unwrap(self, owner: Principal, row: UserKey) -> bytes | None:
        """Return a data key, None if it was altered. Raise Unavailable if its master key is missing."""
        box = self._boxes.get(row.master_id)
        if box is None:
            raise Unavailable(
                "OUTPUT_KEY_UNAVAILABLE",
                f"this user's key was wrapped by master key {row.master_id}, which this service does not have; "
                "add it to the file in MEMORY_MASTER_KEY_FILE",
                metadata={"master_key_id": row.master_id},
            )
        return box.open(row.wrapped, _place(owner, row.key_id))


class UserKeys:
    """The data keys of users, created on first use."""

    def __init__(self, store: KeyStore, masters: MasterKeys, clock: Clock) -> None:
        self._store = store
        self._masters = masters
        self._clock = clock

    async def hold(self, owner: Principal) -> HeldKey:
        """Return the owner's key, durable on return. Raise Unavailable OUTPUT_KEY_UNAVAILABLE."""
        row = await self._store.get(owner)
        if row is None:
            key_id = new_id("key")
            wrapped = self._masters.wrap(owner, key_id, secrets.token_bytes(KEY_BYTES))
            row = UserKey(key_id, self._masters.active_id, wrapped, 0)
            row = await self._store.add(owner, row, self._clock.now_us())
        key = self._masters.unwrap(owner, row)
        if key is None:
            raise Unavailable(
                "OUTPUT_KEY_UNAVAILABLE",
                "this user's key is not as it was wrapped, so nothing sealed under it could be read again and nothing "
                "was stored; restore a backup of the database",
                metadata={"master_key_id": row.master_id},
            )
        return HeldKey(row.key_id, Vault(key))

    def opener(self, owner: Principal, key_id: str, row: UserKey | None) -> Opener:
        """Return the opener of an output sealed under key_id; empty means from before sealing.

        An output whose key is missing or altered does not open. Raise Unavailable OUTPUT_KEY_UNAVAILABLE.
        """
        if not key_id:
            return Unsealed()
        if row is None or row.key_id != key_id:
            return Vault(secrets.token_bytes(KEY_BYTES))
        return Vault(self._masters.unwrap(owner, row) or secrets.token_bytes(KEY_BYTES))


def load_master_keys(folder: Path, file: Path | None) -> MasterKeys:
    """Return the keys of ``file``, or those in the folder, created if missing. Raise StartError."""
    try:
        if file is None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = folder / MASTER_FILE
            create_key_file(file, lambda: base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).rstrip(b"=") + b"\n")
            return _parse(file, read_key_file(file))
        return _parse(file, read_key_file(file, forbidden=OTHERS_WRITE))
    except ExposedKeyError as error:
        raise StartError(str(error)) from None
    except OSError as error:
        raise StartError(
            f"{file or folder}: the master key cannot be used ({error.strerror}); "
            "give the service the right to, or name another file in MEMORY_MASTER_KEY_FILE"
        ) from None


def warn_beside_data(folder: Path, file: Path | None) -> None:
    """Warn if the keys are below the data folder: a copy of that folder then includes the keys."""
    file = file or folder / MASTER_FILE
    if file.resolve().is_relative_to(folder.parent.resolve()):
        _log.warning(
            "the master key is stored next to the data it encrypts: anyone who copies the folder can read all outputs; "
            "store the key elsewhere and set MEMORY_MASTER_KEY_FILE",
            file=str(file),
        )


def master_key_id(key: bytes) -> str:
    """Return an id of a master key that reveals nothing about it."""
    return hashlib.sha256(b"phylactery-master-key-id\x00" + key).hexdigest()[:16]


def _place(owner: Principal, key_id: str) -> bytes:
    return f"user key\0{owner.tenant}\0{owner.subject}\0{key_id}".encode()


def _parse(file: Path, content: bytes) -> MasterKeys:
    keys: list[bytes] = []
    for line in content.split():
        try:
            keys.append(base64.b64decode(line + b"=" * (-len(line) % 4), altchars=b"-_", validate=True))
        except binascii.Error:
            keys.append(b"")
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise StartError(
            f"{file}: is not a master key, which is {KEY_BYTES} bytes in base64url on a line; restore it from a backup"
        )
    return MasterKeys(keys)

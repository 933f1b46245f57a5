"""Hashes in the notation of the contracts, authenticated encryption, and key files that only their owner can read."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from phylactery_chassis.util.durable_files import write_whole

KEY_BYTES: Final = 32
_NONCE_BYTES = 12
OTHERS: Final = 0o077
"""The rights of everyone but the owner."""
OTHERS_WRITE: Final = 0o022
"""The rights that a mounted secret must not grant; the operator decides who may read it."""


class ExposedKeyError(Exception):
    """The mode of a key file grants others rights; the message names the remedy."""


def sha256(data: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of a text in UTF-8, as "sha256:" and 64 hex digits."""
    return "sha256:" + hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """Return the MAC (RFC 2104 with SHA-256)."""
    return hmac.digest(key, message, "sha256")


def keyed_hash(key: bytes, message: bytes) -> str:
    """Return the MAC as "hmac-sha256:" and 64 hex digits."""
    return "hmac-sha256:" + hmac_sha256(key, message).hex()


class Box:
    """AES-256-GCM under one key: nonce, ciphertext and tag."""

    def __init__(self, key: bytes) -> None:
        """``key`` has 32 bytes."""
        self._cipher = AESGCM(key)

    def seal(self, plain: bytes, place: bytes) -> bytes:
        """Return the sealed bytes, bound to place."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, place)

    def open(self, sealed: bytes, place: bytes) -> bytes | None:
        """Return the plain bytes, None if they were altered, moved, or sealed under another key."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
        except (InvalidTag, ValueError):
            return None


def create_key_file(path: Path, make: Callable[[], bytes]) -> None:
    """Create a key file durably with mode 0600 if it is missing; of several processes, the first one's stays.

    Raise OSError.
    """
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            write_whole(path, make(), replace=False)


def read_key_file(path: Path, *, forbidden: int = OTHERS) -> bytes:
    """Return a file's bytes. Raise ExposedKeyError if its mode grants a forbidden right, and OSError."""
    with path.open("rb") as file:
        _refuse_exposed(path, os.fstat(file.fileno()), forbidden)
        return file.read()


def read_secret_file(path: Path) -> bytes:
    """Return the bytes of a file with a secret: a token, a password, an app secret.

    A file of somebody else's is mounted, and its owner decides who may read it; nobody else may write it. What is no
    file, such as a pipe, has no mode. Raise ExposedKeyError if others may read our own file, and OSError.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if stat.S_ISREG(found.st_mode):
            _refuse_exposed(path, found, OTHERS if found.st_uid == os.geteuid() else OTHERS_WRITE)
        return file.read()


def make_private(file: int | str) -> None:
    """Let nobody else read or write a file, by its descriptor or path, if it is a file of ours."""
    found = os.stat(file)  # noqa: PTH116 - of a descriptor, too
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & OTHERS:
        os.chmod(file, stat.S_IMODE(found.st_mode) & ~OTHERS)  # noqa: PTH101


def make_folder_private(folder: Path) -> None:
    """Let nobody else into a folder of ours; one in which everybody has files of their own stays as it is."""
    found = folder.stat()
    if found.st_uid == os.geteuid() and found.st_mode & OTHERS and not found.st_mode & stat.S_ISVTX:
        folder.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS)


def _refuse_exposed(path: Path, found: os.stat_result, forbidden: int) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if mode & forbidden:
        fault, change = ("accessible to", "600") if forbidden == OTHERS else ("writable by", "go-w")
        raise ExposedKeyError(
            f"{path}: mode {mode:04o} makes it {fault} others; run: chmod {change} {path}, or set its mode where it is "
            "mounted from (defaultMode: 0400)"
        )

"""Sealing of values that must not be readable in any store: AES-256-GCM with a key file only its owner can read."""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_BYTES = 32
_NONCE_BYTES = 12
KEY_FILE = "seal.key"


class SealError(RuntimeError):
    """The key file is unusable, or a sealed value was altered or sealed under another key."""


class Sealer:
    """Encryption for the codes of waiting approval replies, and keyed hashes that reveal nothing of message bodies."""

    def __init__(self, secret: bytes) -> None:
        """Take 32 secret bytes; two keys are derived from them (HKDF, RFC 5869)."""
        self._aead = AESGCM(_derive(secret, b"phylactery agent: sealed codes"))
        self._mac_key = _derive(secret, b"phylactery agent: body hashes")

    @classmethod
    def from_folder(cls, folder: Path) -> Sealer:
        """Read <folder>/seal.key, or create it with mode 0600. Raise SealError."""
        path = folder / KEY_FILE
        if not path.exists():
            _create(path)  # if another process was faster, its key is used
        if path.stat().st_mode & 0o077:
            raise SealError(f"{path} can be read by others; run: chmod 600 {path}")
        secret = path.read_bytes()
        if len(secret) != _KEY_BYTES:
            raise SealError(f"{path} is not a valid key file: it must hold exactly {_KEY_BYTES} bytes")
        return cls(secret)

    @property
    def fingerprint(self) -> str:
        """Return an identifier of this key that reveals nothing else about it."""
        return hmac.new(self._mac_key, b"phylactery agent: which key", hashlib.sha256).hexdigest()

    def seal(self, text: str, *, turn_id: str) -> bytes:
        """Return the text, encrypted and bound to its turn."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, text.encode(), turn_id.encode())

    def open(self, sealed: bytes, *, turn_id: str) -> str:
        """Return the text sealed to a turn. Raise SealError."""
        try:
            return self._aead.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], turn_id.encode()).decode()
        except InvalidTag:
            raise SealError(f"the code of turn {turn_id} cannot be unsealed; was {KEY_FILE} replaced?") from None

    def body_hash(self, body: bytes) -> str:
        """Return a keyed hash: a plain hash of a short code could be brute-forced."""
        return "sha256:" + hmac.new(self._mac_key, body, hashlib.sha256).hexdigest()


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=purpose).derive(secret)


def _create(path: Path) -> None:
    """Write a new key to a draft file and rename it, so that a crash never leaves a partial key.

    Of several processes that start at once in one folder, one writes it and the others find it.
    """
    draft = path.with_name(path.name + ".new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if path.exists():
            return
        os.ftruncate(descriptor, 0)
        os.write(descriptor, secrets.token_bytes(_KEY_BYTES))
        os.fsync(descriptor)
        draft.replace(path)
    finally:
        os.close(descriptor)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

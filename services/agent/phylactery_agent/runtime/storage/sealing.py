"""Sealing of values that must not be readable in any store: AES-256-GCM with a key file only its owner can read."""

from __future__ import annotations

import secrets
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from phylactery_chassis.util.crypto import (
    KEY_BYTES,
    Box,
    ExposedKeyError,
    create_key_file,
    hmac_sha256,
    read_key_file,
)

KEY_FILE = "seal.key"


class SealError(RuntimeError):
    """The key file is unusable, or a sealed value was altered or sealed under another key."""


class Sealer:
    """Encryption for the codes of waiting approval replies, and keyed hashes that reveal nothing of message bodies."""

    def __init__(self, secret: bytes) -> None:
        """Take 32 secret bytes; three keys are derived from them (HKDF, RFC 5869)."""
        self._box = Box(_derive(secret, b"phylactery agent: sealed codes"))
        self.columns = Box(_derive(secret, b"phylactery agent: sealed columns"))
        """The key of the tables' sealed columns."""
        self._mac_key = _derive(secret, b"phylactery agent: body hashes")

    @classmethod
    def from_folder(cls, folder: Path) -> Sealer:
        """Read <folder>/seal.key, or create it with mode 0600. Raise SealError."""
        path = folder / KEY_FILE
        create_key_file(path, lambda: secrets.token_bytes(KEY_BYTES))
        try:
            secret = read_key_file(path)
        except ExposedKeyError as error:
            raise SealError(str(error)) from None
        if len(secret) != KEY_BYTES:
            raise SealError(f"{path} is not a valid key file: it must hold exactly {KEY_BYTES} bytes")
        return cls(secret)

    @property
    def fingerprint(self) -> str:
        """Return an identifier of this key that reveals nothing else about it."""
        return hmac_sha256(self._mac_key, b"phylactery agent: which key").hex()

    def seal(self, text: str, *, turn_id: str) -> bytes:
        """Return the text, encrypted and bound to its turn."""
        return self._box.seal(text.encode(), turn_id.encode())

    def open(self, sealed: bytes, *, turn_id: str) -> str:
        """Return the text sealed to a turn. Raise SealError."""
        plain = self._box.open(sealed, turn_id.encode())
        if plain is None:
            raise SealError(f"the code of turn {turn_id} cannot be unsealed; was {KEY_FILE} replaced?")
        return plain.decode()

    def cover(self, data: bytes, *, of: str) -> bytes:
        """Return a person's data, encrypted and bound to the run or form session it is of."""
        return self._box.seal(data, of.encode())

    def uncover(self, covered: bytes, *, of: str) -> bytes:
        """Return the data covered for a run or form session. Raise SealError."""
        plain = self._box.open(covered, of.encode())
        if plain is None:
            raise SealError(f"what is stored of {of} cannot be unsealed; was {KEY_FILE} replaced?")
        return plain

    def body_hash(self, body: bytes) -> str:
        """Return a keyed hash: a plain hash of a short code could be brute-forced."""
        return "sha256:" + hmac_sha256(self._mac_key, body).hex()


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose).derive(secret)

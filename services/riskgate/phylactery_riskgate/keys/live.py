"""The keys of a running RiskGate, which follow the signing file, so that a rotation needs no restart.

The file is checked before each signature or verification (two microseconds), so the new key signs everything after a
change. A file that cannot be loaded changes nothing: the previous keys stay in use, the fault is logged once, and
ListKeys reports it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from phylactery_chassis.auth.jws import Claims, TokenType, sign, verify, verify_signature
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_riskgate.keys.ring import SIGNING_FILE, KeyRing, KeysError, load_keys, read_signing

_log = get_logger("keys")

_MAX_SIGNED = 8_192
_Stamp = tuple[int, int, int]


class _Signed:
    """A cache of the signatures this process made recently, as hashes; the older half is evicted first.

    Verifying a signature takes longer than the rest of a Redeem, and only the signer can add an entry.
    """

    def __init__(self) -> None:
        self._new: set[bytes] = set()
        self._old: set[bytes] = set()

    def keep(self, key: bytes, message: bytes, signature: bytes) -> None:
        """Add a signature that was just made with the private half of a raw public key."""
        if len(self._new) >= _MAX_SIGNED:
            self._old, self._new = self._new, set()
        self._new.add(_digest(key, message, signature))

    def genuine(self, key: bytes, message: bytes, signature: bytes) -> bool:
        """Return True if a signature is in the cache, or else verifies with the key."""
        digest = _digest(key, message, signature)
        return digest in self._new or digest in self._old or verify_signature(key, message, signature)


def _digest(key: bytes, message: bytes, signature: bytes) -> bytes:
    """Return one hash of all three, unambiguous because key and signature have fixed lengths."""
    return hashlib.sha256(b"".join((key, signature, message))).digest()


class LiveKeys:
    """Holder of the current keys. A ring is replaced as a whole: a signature names its key."""

    def __init__(self, ring: KeyRing, path: Path, *, mounted: bool = False) -> None:
        """Start with loaded keys and the signing file they came from."""
        self._ring, self._path, self._mounted = ring, path, mounted
        self._file = str(path)
        self._stamp = _stamp(self._file)
        self._problem = ""
        self._signed = _Signed()

    @classmethod
    def open(cls, folder: Path, signing_file: Path | None = None, *, known: bool = False) -> Self:
        """Load the keys as load_keys does. Raise KeysError."""
        path = signing_file or folder / SIGNING_FILE
        before = _stamp(str(path))
        live = cls(load_keys(folder, signing_file, known=known), path, mounted=signing_file is not None)
        if before is not None:
            live._stamp = before  # replaced during the load: the next look finds it
        return live

    @property
    def ring(self) -> KeyRing:
        """Return the current keys: fetch them once per use."""
        self.look()
        return self._ring

    @property
    def problem(self) -> str:
        """Return why the current signing file is not in use, or an empty string."""
        self.look()
        return self._problem

    @property
    def code_key(self) -> bytes:
        """Return the key for approval codes, which never changes while serving."""
        return self._ring.code_key

    def sign(self, claims: Mapping[str, Any], kind: TokenType) -> str:
        """Return the token, signed by the active key."""
        ring = self.ring
        noted = partial(self._signed.keep, ring.public[0].raw) if kind is TokenType.PERMIT else None
        return sign(claims, kind, ring.kid, ring.signer, noted=noted)

    def verify(self, token: str, kind: TokenType) -> Claims:
        """Return the claims of a token signed by a key that is not revoked. Raise TokenError."""
        return verify(token, kind, self.ring.verifying, genuine=self._signed.genuine)

    def look(self) -> None:
        """Reload the signing file if it has changed."""
        stamp = _stamp(self._file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            public, signer = read_signing(self._path, mounted=self._mounted)
        except KeysError as error:
            self._problem = str(error)
            _log.error("the signing keys cannot be loaded; those from before stay in use", problem=self._problem)
            return
        self._ring, self._problem = replace(self._ring, public=public, signer=signer), ""
        _log.info("signing keys loaded", active=self._ring.kid, keys={key.kid: str(key.state) for key in public})


def _stamp(path: str) -> _Stamp | None:
    """Return the fingerprint of a file's version, or None if there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path would be parsed again at every look
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size

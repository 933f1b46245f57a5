"""The keys of a running RiskGate: they follow the signing file, so that a rotation needs no restart.

The file is looked at before anything is signed or verified (two microseconds), so what is signed after a change is
signed by the new key. A file that cannot be loaded changes nothing: the keys from before stay in use, the fault is
logged once, and ListKeys tells it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from phylactery_chassis.auth.signatures import verify_signature
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_riskgate.keys.permits import Claims, TokenType, sign, verify
from phylactery_riskgate.keys.ring import SIGNING_FILE, KeyRing, KeysError, load_keys, read_signing

_log = get_logger("keys")

_MAX_SIGNED = 8_192
_Stamp = tuple[int, int, int]


class _Signed:
    """The signatures this process made of late, as hashes; the oldest half goes first.

    To verify one takes longer than all else a Redeem looks at, and nobody but who signed can put one here.
    """

    def __init__(self) -> None:
        self._new: set[bytes] = set()
        self._old: set[bytes] = set()

    def keep(self, key: bytes, message: bytes, signature: bytes) -> None:
        """Keep what was just signed by the private half of a raw public key."""
        if len(self._new) >= _MAX_SIGNED:
            self._old, self._new = self._new, set()
        self._new.add(_digest(key, message, signature))

    def genuine(self, key: bytes, message: bytes, signature: bytes) -> bool:
        """Return whether a signature is good: as is known of the very same one, or as the key says."""
        digest = _digest(key, message, signature)
        return digest in self._new or digest in self._old or verify_signature(key, message, signature)


def _digest(key: bytes, message: bytes, signature: bytes) -> bytes:
    """Return what stands for all three: a key's and a signature's length are fixed."""
    return hashlib.sha256(b"".join((key, signature, message))).digest()


class LiveKeys:
    """Holds the keys of this moment. A ring is replaced whole: what is signed names the key that signed it."""

    def __init__(self, ring: KeyRing, path: Path, *, mounted: bool = False) -> None:
        """Take the keys as loaded, and the signing file they came from."""
        self._ring, self._path, self._mounted = ring, path, mounted
        self._file = str(path)
        self._stamp = _stamp(self._file)
        self._problem = ""
        self._signed = _Signed()

    @classmethod
    def open(cls, folder: Path, signing_file: Path | None = None) -> Self:
        """Load the keys as load_keys does. Raise KeysError."""
        path = signing_file or folder / SIGNING_FILE
        before = _stamp(str(path))
        live = cls(load_keys(folder, signing_file), path, mounted=signing_file is not None)
        if before is not None:
            live._stamp = before  # replaced while it was loaded: the next look finds it
        return live

    @property
    def ring(self) -> KeyRing:
        """The keys of this moment: take them once for each use."""
        self.look()
        return self._ring

    @property
    def problem(self) -> str:
        """Say why the signing file of today is not the one in use; empty where it is."""
        self.look()
        return self._problem

    @property
    def code_key(self) -> bytes:
        """What codes are computed with; it never changes while serving."""
        return self._ring.code_key

    def sign(self, claims: Mapping[str, Any], kind: TokenType) -> str:
        """Return the token, signed by the active key."""
        ring = self.ring
        noted = partial(self._signed.keep, ring.public[0].raw) if kind is TokenType.PERMIT else None
        return sign(claims, kind, ring.kid, ring.signer, noted=noted)

    def verify(self, token: str, kind: TokenType) -> Claims:
        """Return the claims of a token a key signed that is not revoked. Raise TokenError."""
        return verify(token, kind, self.ring.verifying, genuine=self._signed.genuine)

    def look(self) -> None:
        """Load the signing file again where it is another one than last time."""
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
    """Return what tells one version of a file from another; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path is taken apart again at every look
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size

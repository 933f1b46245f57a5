"""The key ring of one RiskGate: signing keys, the key for codes, and the data key for argument values.

The keys are in <data_dir>/keys, created at the first start, mode 0600 in a folder of mode 0700. Files are created
atomically: written under a temporary name, synced, then linked to the final name, so that neither kill -9 nor a second
process starting at the same time leaves a partial or duplicate key. keys.rotation rotates and revokes; keys.live
follows the file while serving.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.jws import TokenError, decode, encode, public_jwk, thumbprint
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import SystemClock
from phylactery_chassis.util.crypto import (
    KEY_BYTES,
    OTHERS,
    OTHERS_WRITE,
    ExposedKeyError,
    create_key_file,
    read_key_file,
)
from phylactery_chassis.util.durable_files import write_whole
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

SIGNING_FILE, CODE_FILE, DATA_FILE = "signing.json", "code.key", "data.key"
_log = get_logger("keys")
_ACTIVE_NOT_ONE = "exactly one key is ACTIVE, and it holds its private half"


class KeysError(RuntimeError):
    """The keys cannot be used; the message names the file and the remedy, and never contains a key."""


class KeyState(StrEnum):
    """The allowed use of a signing key."""

    ACTIVE = "ACTIVE"
    RETIRING = "RETIRING"
    REVOKED = "REVOKED"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One public key: kid is its RFC 7638 thumbprint, raw its 32 bytes; an unknown time is 0."""

    kid: str
    raw: bytes
    state: KeyState
    create_us: int = 0
    retire_us: int = 0
    revoke_us: int = 0

    @property
    def jwk(self) -> dict[str, str]:
        """Return the key as a JWK (RFC 8037) with kid, use and alg."""
        return {**public_jwk(self.raw), "alg": "Ed25519", "kid": self.kid, "use": "sig"}


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Every key of one RiskGate; ``public`` begins with the active one."""

    public: tuple[PublicKey, ...]
    signer: Ed25519PrivateKey = field(repr=False)
    code_key: bytes = field(repr=False)
    data_key: bytes = field(repr=False)

    @property
    def kid(self) -> str:
        """Return the active key's kid."""
        return self.public[0].kid

    @property
    def verifying(self) -> Mapping[str, bytes]:
        """Return the keys that verify signatures: raw public key by kid, without revoked ones."""
        return {key.kid: key.raw for key in self.public if key.state is not KeyState.REVOKED}

    @property
    def data_key_id(self) -> str:
        """Return an id of the data key that reveals nothing about it."""
        return hashlib.sha256(b"phylactery-data-key-id\x00" + self.data_key).hexdigest()[:16]


_Segment = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]


_Time = Annotated[int, Field(ge=0, lt=2**63)]


class SigningJwk(BaseModel):
    """One Ed25519 key as a JWK (RFC 8037); d is present only while it signs."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    kty: Literal["OKP"] = "OKP"
    crv: Literal["Ed25519"] = "Ed25519"
    x: _Segment
    d: _Segment | None = Field(None, repr=False)


class SigningKey(BaseModel):
    """One key of the signing file, and the times of its state changes, in microseconds since the epoch."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    state: KeyState
    jwk: SigningJwk
    create_us: _Time = 0
    retire_us: _Time = 0
    revoke_us: _Time = 0

    @classmethod
    def fresh(cls, now_us: int) -> SigningKey:
        """Create a new key that is active from now on."""
        private = Ed25519PrivateKey.generate()
        x, d = encode(private.public_key().public_bytes_raw()), encode(private.private_bytes_raw())
        return cls(state=KeyState.ACTIVE, jwk=SigningJwk(x=x, d=d), create_us=now_us)

    @property
    def kid(self) -> str:
        """Return the key's RFC 7638 thumbprint. Raise TokenError."""
        return thumbprint(decode(self.jwk.x))


class SigningFile(BaseModel):
    """The signing file: every key that ever existed."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    keys: list[SigningKey]

    @classmethod
    def fresh(cls, now_us: int) -> SigningFile:
        """Create a file with one new key, active from now on."""
        return cls(keys=[SigningKey.fresh(now_us)])

    @property
    def content(self) -> bytes:
        """Return the file's bytes."""
        return self.model_dump_json(indent=1, exclude_none=True).encode() + b"\n"


def load_keys(folder: Path, signing_file: Path | None = None, *, known: bool = False) -> KeyRing:
    """Return the keys in the folder, creating missing ones. Raise KeysError.

    signing_file is the location of signing keys elsewhere, such as a mounted secret; it is never created. known says
    that the database was written under keys. Then of these the one for codes alone is made anew: codes are stored
    nowhere, so waiting approvals show new ones, and the old ones are refused. A new signing key would be trusted at
    once by whoever asks for the keys, and what the lost one signed would be called forged; under a new data key no
    value in the database can be opened, and no call that a person rejected is recognized.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise KeysError(f"{folder}: the key folder cannot be made ({error.strerror})") from None
    if folder.stat().st_mode & OTHERS_WRITE:
        raise KeysError(f"{folder}: others may write here; run: chmod 700 {folder}")
    if known:
        _refuse_lost(folder, signing=signing_file is None)
    if signing_file is None:
        create_missing(folder / SIGNING_FILE, lambda: SigningFile.fresh(SystemClock().now_us()).content)
    public, signer = read_signing(signing_file or folder / SIGNING_FILE, mounted=signing_file is not None)
    return KeyRing(
        public=public,
        signer=signer,
        code_key=_read_or_create(folder / CODE_FILE),
        data_key=_read_or_create(folder / DATA_FILE),
    )


def _refuse_lost(folder: Path, *, signing: bool) -> None:
    """Raise KeysError if a key that the database was written under is missing; warn of one that may be made anew."""
    missing = [name for name in (SIGNING_FILE, CODE_FILE, DATA_FILE) if not (folder / name).exists()]
    if signing and SIGNING_FILE in missing:
        raise KeysError(
            f"{folder / SIGNING_FILE} is missing, and this database was written with a signing key: restore the file "
            "from a backup. If the key is lost for good, run: riskgate keys create (permits, receipts and signed heads "
            "of the lost key then no longer verify)"
        )
    if DATA_FILE in missing:
        raise KeysError(
            f"{folder / DATA_FILE} is missing, and this database was written with a data key, without which nothing "
            "sealed in it can be opened: restore the file from a backup. If the key is lost for good, start over with "
            "a separate database; docs/riskgate.md says how"
        )
    if CODE_FILE in missing:
        _log.warning(
            "the key of approval codes is missing and is made anew: waiting approvals show new codes, and those that "
            "were shown before are refused",
            file=str(folder / CODE_FILE),
        )


def read_signing(path: Path, *, mounted: bool = False) -> tuple[tuple[PublicKey, ...], Ed25519PrivateKey]:
    """Return every public key of a signing file, the active one first, and the signer. Raise KeysError.

    A mounted secret may be readable by others: its mount determines who has access.
    """
    return _described(path, read_signing_file(path, mounted=mounted))


def read_signing_file(path: Path, *, mounted: bool = False) -> SigningFile:
    """Read a signing file without creating one. Raise KeysError."""
    content = _read(path, forbidden=OTHERS_WRITE if mounted else OTHERS)
    try:
        return SigningFile.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise KeysError(f"{path}: damaged at {where} ({first['msg']}); restore it from a backup") from None


def create_missing(path: Path, make: Callable[[], bytes]) -> None:
    """Create a key file durably unless it exists. Raise KeysError."""
    with _described_faults(path, "written"):
        create_key_file(path, make)


def write_signing_file(path: Path, keys: list[SigningKey]) -> None:
    """Replace the signing file atomically and durably. Raise KeysError."""
    with _described_faults(path, "written"):
        write_whole(path, SigningFile(keys=keys).content)


def _read_or_create(path: Path) -> bytes:
    create_missing(path, lambda: encode(secrets.token_bytes(KEY_BYTES)).encode() + b"\n")
    try:
        key = decode(_read(path).decode("ascii").strip())
    except (TokenError, UnicodeDecodeError):
        key = b""
    if len(key) != KEY_BYTES:
        raise KeysError(f"{path}: damaged, not {KEY_BYTES} bytes in base64url; restore it from a backup")
    return key


def _read(path: Path, *, forbidden: int = OTHERS) -> bytes:
    if not path.exists():
        raise KeysError(f"{path}: no key exists yet; start the service once, or run: riskgate keys create")
    with _described_faults(path, "read"):
        return read_key_file(path, forbidden=forbidden)


@contextlib.contextmanager
def _described_faults(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except ExposedKeyError as error:
        raise KeysError(str(error)) from None
    except OSError as error:
        raise KeysError(f"{path}: cannot be {what} ({error.strerror})") from None


def _described(path: Path, parsed: SigningFile) -> tuple[tuple[PublicKey, ...], Ed25519PrivateKey]:
    public: list[PublicKey] = []
    signer: Ed25519PrivateKey | None = None
    for key in parsed.keys:
        raw = _raw(path, key.jwk.x)
        public.append(PublicKey(thumbprint(raw), raw, key.state, key.create_us, key.retire_us, key.revoke_us))
        if key.state is not KeyState.ACTIVE:
            continue
        if signer is not None or key.jwk.d is None:
            raise KeysError(f"{path}: {_ACTIVE_NOT_ONE}")
        signer = Ed25519PrivateKey.from_private_bytes(_raw(path, key.jwk.d))
        if signer.public_key().public_bytes_raw() != raw:
            raise KeysError(f"{path}: damaged, the two halves of the active key do not belong together")
    if signer is None:
        raise KeysError(f"{path}: no key is ACTIVE")
    if len({key.kid for key in public}) < len(public):
        raise KeysError(f"{path}: a key is listed twice, so its state is ambiguous")
    return tuple(sorted(public, key=lambda key: (list(KeyState).index(key.state), -key.create_us))), signer


def _raw(path: Path, segment: str) -> bytes:
    try:
        return decode(segment)
    except TokenError:
        raise KeysError(f"{path}: damaged, a key is not base64url; restore it from a backup") from None

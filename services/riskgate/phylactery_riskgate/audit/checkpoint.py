"""Signed heads of the audit log: C2SP tlog-checkpoint in a C2SP signed-note, with Ed25519 and cosignatures.

https://c2sp.org/signed-note, https://c2sp.org/tlog-checkpoint, https://c2sp.org/tlog-cosignature. A note is text that
ends in a line break, an empty line, and signature lines "— name base64(key id + signature)". Go's sumdb/note opens what
this module signs.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery_chassis.auth.jws import verify_signature

from phylactery_riskgate.audit.merkle import HASH_BYTES

_ED25519 = b"\x01"
_KEY_ID_BYTES = 4
_SIGNATURE_BYTES = 64
_TIME_BYTES = 8
_MARK = "— "
_LINES = 3
_MAX_SIZE_DIGITS = 19
_MAX_SIGNATURES = 100


class NoteError(ValueError):
    """The note or the key is malformed, or no known key signed it."""


class UnknownKeyError(NoteError):
    """The note is well-formed, but none of the given keys signed it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log's name, its number of entries and its tree head."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """Return the note's text: origin, size and head, one per line."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a checkpoint's text; lines after the third are extensions. Raise NoteError."""
        lines = text.split("\n")
        if len(lines) <= _LINES or not lines[0] or not lines[1].isascii() or not lines[1].isdigit():
            raise NoteError("a checkpoint is three lines: origin, size, root")
        if len(lines[1]) > _MAX_SIZE_DIGITS:
            raise NoteError("the size is larger than any log")
        if lines[1] != str(int(lines[1])):
            raise NoteError("the size has leading zeros")
        root = _decode(lines[2])
        if len(root) != HASH_BYTES:
            raise NoteError(f"the root has {len(root)} bytes, not {HASH_BYTES}")
        return cls(lines[0], int(lines[1]), root)


@dataclass(frozen=True, slots=True)
class Verifier:
    """A key name and a raw Ed25519 public key, to verify notes with."""

    kind: ClassVar[bytes] = _ED25519

    name: str
    public_key: bytes

    def __post_init__(self) -> None:
        """Raise NoteError if the name is not valid in a signature line."""
        if not self.name.isprintable() or not self.name or set("+ ") & set(self.name):
            raise NoteError(
                "a key name is not empty and holds neither a plus sign, nor a space, nor what is not printed"
            )

    @property
    def key_id(self) -> bytes:
        """Return the four-byte id that distinguishes keys of the same name."""
        return hashlib.sha256(self.name.encode() + b"\n" + self.kind + self.public_key).digest()[:_KEY_ID_BYTES]

    @property
    def text(self) -> str:
        """Return the vkey: name, key id in hex, and key, joined with plus signs."""
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(self.kind + self.public_key).decode()}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a vkey. Raise NoteError."""
        name, _, rest = text.strip().partition("+")
        key_id, _, encoded = rest.partition("+")
        key = _decode(encoded)
        if len(key) != HASH_BYTES + 1 or key[:1] != cls.kind:
            raise NoteError(f"the vkey holds no Ed25519 key of signature type {cls.kind[0]}")
        verifier = cls(name, key[1:])
        if verifier.key_id.hex() != key_id:
            raise NoteError("the vkey's id does not belong to its name and key")
        return verifier

    def genuine(self, text: bytes, signature: bytes) -> bool:
        """Return True if this key signed a note's text."""
        return len(signature) == _SIGNATURE_BYTES and verify_signature(self.public_key, text, signature)


class Cosigner(Verifier):
    """A witness: signs a head together with the time at which it saw that the head extends the one before."""

    kind = b"\x04"

    def genuine(self, text: bytes, signature: bytes) -> bool:
        """Return True if this witness cosigned a note's text."""
        signed = cosigned_message(text, signature[:_TIME_BYTES])
        return super().genuine(signed, signature[_TIME_BYTES:])


def cosigned_message(text: bytes, time: bytes) -> bytes:
    """Return the message a witness signs for a note's text; time is eight bytes of seconds since the epoch."""
    return b"cosignature/v1\ntime %d\n" % int.from_bytes(time, "big") + text


def sign_note(text: str, name: str, key: Ed25519PrivateKey) -> str:
    """Return the signed note. Raise NoteError if the text lacks a final line break or the name is not a key name."""
    if not text.endswith("\n"):
        raise NoteError("a note's text ends in a line break")
    verifier = Verifier(name, key.public_key().public_bytes_raw())
    signature = base64.b64encode(verifier.key_id + key.sign(text.encode())).decode()
    return f"{text}\n{_MARK}{name} {signature}\n"


def open_note(note: str, verifiers: Sequence[Verifier]) -> str:
    """Return the text of a note that at least one of the keys signed.

    Signatures of unknown keys are ignored, as the specification requires; a wrong one of a known key is an error. Raise
    NoteError, and its subclass UnknownKeyError if no key is known.
    """
    text, separator, signatures = note.rpartition("\n\n")
    lines = signatures.split("\n")
    if not separator or lines[-1] != "" or not 1 < len(lines) <= _MAX_SIGNATURES + 1:
        raise NoteError("not a signed note")
    text += "\n"
    try:
        signed = text.encode()
    except UnicodeEncodeError:
        raise NoteError("its text is not valid Unicode") from None
    found = False
    for line in lines[:-1]:
        name, _, encoded = line.removeprefix(_MARK).partition(" ")
        signature = _decode(encoded)
        if not line.startswith(_MARK) or len(signature) <= _KEY_ID_BYTES:
            raise NoteError("a signature line is malformed")
        for verifier in verifiers:
            if (name, signature[:_KEY_ID_BYTES]) != (verifier.name, verifier.key_id):
                continue
            if not verifier.genuine(signed, signature[_KEY_ID_BYTES:]):
                raise NoteError(f"the signature of {name} is wrong")
            found = True
    if not found:
        raise UnknownKeyError("no known key signed this note")
    return text


def signed_by(note: str, verifiers: Sequence[Verifier]) -> bool:
    """Return True if one of the keys signed the note."""
    try:
        open_note(note, verifiers)
    except NoteError:
        return False
    return True


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NoteError("not base64") from None

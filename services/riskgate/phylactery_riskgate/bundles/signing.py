"""Policy keys and bundle signatures: a C2SP signed note alongside the files, named bundle.sig.

The note's text is three lines: a fixed one, the revision, and the hash over every other file. So the signature covers
exactly these files and this revision, and standard tools for signed notes can check it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from phylactery_chassis.auth.jws import decode, encode, public_jwk, thumbprint
from phylactery_chassis.util.crypto import ExposedKeyError, read_secret_file
from phylactery_chassis.util.durable_files import write_whole

from phylactery_riskgate.audit.checkpoint import NoteError, UnknownKeyError, Verifier, open_note, sign_note
from phylactery_riskgate.domain.bundle.files import SIGNATURE_FILE, BundleFiles

SIGNER_NAME = "riskgate-policy"
"""The name in every bundle's signature line; keys are distinguished by their key id."""
_TITLE = "phylactery policy bundle v1"
_PEM_END = "-----END PUBLIC KEY-----"
_KEY_BYTES = 32
_LINES = 4


class PolicyKeyError(ValueError):
    """A key file that cannot be used; the message names the file and never contains a private key."""


class SignatureError(ValueError):
    """A bundle that no trusted key signed; the message says why."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The content of a valid signature: the revision, and the RFC 7638 thumbprint of the key."""

    revision: int
    kid: str


class PolicyKeys:
    """The public keys that are trusted with policies. Without any, bundles need no signature."""

    def __init__(self, public_keys: Iterable[bytes] = ()) -> None:
        """Set up verifiers for raw Ed25519 public keys."""
        self._verifiers = {thumbprint(raw): Verifier(SIGNER_NAME, raw) for raw in public_keys}

    def __bool__(self) -> bool:
        """Return True if bundles must be signed."""
        return bool(self._verifiers)

    @property
    def kids(self) -> tuple[str, ...]:
        """Return the thumbprints of the keys."""
        return tuple(self._verifiers)

    def check(self, files: BundleFiles) -> Signed:
        """Return the content of the bundle's signature, if a trusted key made it for exactly these files.

        Raise SignatureError.
        """
        if not files.signature:
            raise SignatureError(f"{SIGNATURE_FILE} is missing, and policy keys are configured: sign the bundle")
        for kid, verifier in self._verifiers.items():
            try:
                text = open_note(files.signature, [verifier])
            except UnknownKeyError:
                continue
            except NoteError as error:
                raise SignatureError(f"{SIGNATURE_FILE}: {error}") from None
            lines = text.split("\n")
            if len(lines) != _LINES or lines[0] != _TITLE or not (lines[1].isascii() and lines[1].isdigit()):
                raise SignatureError(f"{SIGNATURE_FILE}: signs something else than a policy bundle")
            if lines[2] != files.hash:
                raise SignatureError(f"{SIGNATURE_FILE}: signs {lines[2]}, and the files are {files.hash}")
            return Signed(int(lines[1]), kid)
        raise SignatureError(f"{SIGNATURE_FILE}: no key that is trusted here signed it")


def sign_bundle(files: BundleFiles, revision: int, key: Ed25519PrivateKey) -> str:
    """Return the text of bundle.sig."""
    return sign_note(f"{_TITLE}\n{revision}\n{files.hash}\n", SIGNER_NAME, key)


def load_policy_keys(path: Path | None) -> PolicyKeys:
    """Read trusted keys: a JWK, a JWK set, PEM public keys, or vkeys, one per line; None requires no signature.

    Raise PolicyKeyError, also for a file without a key, so that an emptied file never disables the check.
    """
    if path is None:
        return PolicyKeys()
    try:
        text = path.read_text(encoding="utf-8").strip()
        found = list(_public_keys(text))
    except OSError as error:
        raise PolicyKeyError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        found = []
    if not found:
        raise PolicyKeyError(f"{path}: holds no Ed25519 public key as JWK, JWK set, PEM or vkey")
    return PolicyKeys(found)


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key: a JWK, or PEM without a passphrase. Raise PolicyKeyError."""
    try:
        data = read_secret_file(path)
    except ExposedKeyError as error:
        raise PolicyKeyError(str(error)) from None
    except OSError as error:
        raise PolicyKeyError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        if data.lstrip().startswith(b"{"):
            return Ed25519PrivateKey.from_private_bytes(decode(json.loads(data)["d"]))
        key = load_pem_private_key(data, None)
    except (ValueError, KeyError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise PolicyKeyError(f"{path}: holds no Ed25519 private key as JWK or PEM without a passphrase")
    return key


def create_key(path: Path) -> Mapping[str, Any]:
    """Write a new private key as a JWK with mode 0600, and its public key as <name>.pub; return the public one.

    Raise PolicyKeyError; an existing file is never overwritten.
    """
    key = Ed25519PrivateKey.generate()
    raw = key.public_key().public_bytes_raw()
    public = {**public_jwk(raw), "alg": "Ed25519", "kid": thumbprint(raw), "use": "sig"}
    private = {**public, "d": encode(key.private_bytes_raw())}
    for name, content, mode in ((path, private, 0o600), (path.with_name(path.name + ".pub"), public, 0o644)):
        try:
            write_whole(name, json.dumps(content, indent=1).encode() + b"\n", mode=mode, replace=False)
        except OSError as error:
            raise PolicyKeyError(f"{name}: cannot be written ({error.strerror})") from None
    return public


def write_signature(folder: Path, text: str) -> None:
    """Write the signature atomically into the bundle's folder. Raise OSError."""
    write_whole(folder / SIGNATURE_FILE, text.encode(), mode=0o666)


def vkey_of(raw: bytes) -> str:
    """Return the key in the vkey form of signed-note tools."""
    return Verifier(SIGNER_NAME, raw).text


def _public_keys(text: str) -> Iterable[bytes]:
    if text.startswith("{"):
        parsed = json.loads(text)
        for jwk in parsed.get("keys", [parsed]):
            raw = decode(jwk["x"])
            if (jwk["kty"], jwk["crv"], len(raw)) != ("OKP", "Ed25519", _KEY_BYTES):
                raise ValueError("no Ed25519 key")
            yield raw
    elif text.startswith("-----BEGIN"):
        for block in text.split(_PEM_END)[:-1]:
            key = load_pem_public_key((block.strip() + "\n" + _PEM_END + "\n").encode())
            if not isinstance(key, Ed25519PublicKey):
                raise TypeError("no Ed25519 key")
            yield key.public_bytes_raw()
    else:
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                yield Verifier.parse(line).public_key

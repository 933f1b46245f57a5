"""Signatures of Standard Webhooks (standardwebhooks.com): HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from phylactery_chassis.util.crypto import hmac_sha256

_PREFIX: Final = "whsec_"
_SHORTEST, _LONGEST = 24, 64
_MOST: Final = 4


class SecretError(ValueError):
    """A text that is no secret of Standard Webhooks; the message does not repeat it."""


def secrets_of(text: str) -> list[bytes]:
    """Return the keys in a text, one a line. Raise SecretError."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 0 < len(lines) <= _MOST:
        raise SecretError(f"one secret a line, at most {_MOST}")
    return [_key(line) for line in lines]


def _key(line: str) -> bytes:
    if not line.startswith(_PREFIX):
        raise SecretError(f"a secret begins with {_PREFIX}; `riskgate notices secret` makes one")
    try:
        key = base64.b64decode(line.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise SecretError(f"a secret is {_PREFIX} and base64; `riskgate notices secret` makes one") from None
    if not _SHORTEST <= len(key) <= _LONGEST:
        raise SecretError(f"a secret has {_SHORTEST} to {_LONGEST} bytes; `riskgate notices secret` makes one")
    return key


def written(key: bytes) -> str:
    """Return a key as a secret is written."""
    return _PREFIX + base64.b64encode(key).decode()


def headers(keys: Sequence[bytes], notice_id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers that identify, date and sign a body; during a rotation there is a signature of each key."""
    signed = f"{notice_id}.{seconds}.".encode() + body
    signatures = (f"v1,{base64.b64encode(hmac_sha256(key, signed)).decode()}" for key in keys)
    return {
        "webhook-id": notice_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signatures),
    }

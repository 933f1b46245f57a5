"""The code a person types to answer a "self" approval in the chat.

An HMAC-SHA256 over everything the approval is bound to, so it carries the signature factor. It is computed again each
time somebody who may see it asks, and stored nowhere.
"""

from __future__ import annotations

import base64
import hmac
import unicodedata

import rfc8785

CODE_CHARACTERS = 10
"""50 bits of base32: with five tries, a guess succeeds once in 2e14."""

_PURPOSE = "phylactery-approval-code-v1"


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """Return the MAC (RFC 2104 with SHA-256)."""
    return hmac.digest(key, message, "sha256")


def approval_code(
    key: bytes, *, approval_id: str, args_hash: str, tenant: str, thread_id: str, requester: str, expire_us: int
) -> str:
    """Return the code of one approval: 10 characters of [A-Z2-7]."""
    bound = rfc8785.dumps([_PURPOSE, approval_id, args_hash, tenant, thread_id, requester, expire_us])
    return base64.b32encode(hmac_sha256(key, bound)).decode()[:CODE_CHARACTERS]


def plain_code(typed: str) -> str:
    """Return a code as it was made, however it was typed: small letters, wide ones, blanks and dashes are no guess."""
    return "".join(char for char in unicodedata.normalize("NFKC", typed).upper() if char.isalnum())


def same_code(expected: str, typed: str) -> bool:
    """Compare in constant time, whatever was typed."""
    return hmac.compare_digest(expected.encode(), plain_code(typed).encode("utf-8", "surrogatepass"))

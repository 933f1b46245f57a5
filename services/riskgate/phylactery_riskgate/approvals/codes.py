"""The code a person types to answer a "self" approval in the chat.

It is an HMAC-SHA256 over everything the approval is bound to, so it serves as the signature factor. It is computed on
each request of a person who may see it, and never stored.
"""

from __future__ import annotations

import base64
import hmac
import unicodedata

import rfc8785
from phylactery_chassis.util.crypto import hmac_sha256

CODE_CHARACTERS = 10
"""Length of a code: 50 bits in base32, so with five tries a guess succeeds once in 2e14."""

_PURPOSE = "phylactery-approval-code-v1"


def approval_code(
    key: bytes, *, approval_id: str, args_hash: str, tenant: str, thread_id: str, requester: str, expire_us: int
) -> str:
    """Return the code of one approval: 10 characters of [A-Z2-7]."""
    bound = rfc8785.dumps([_PURPOSE, approval_id, args_hash, tenant, thread_id, requester, expire_us])
    return base64.b32encode(hmac_sha256(key, bound)).decode()[:CODE_CHARACTERS]


def plain_code(typed: str) -> str:
    """Return a typed code in canonical form: lower case, full width, blanks and dashes are tolerated."""
    return "".join(char for char in unicodedata.normalize("NFKC", typed).upper() if char.isalnum())


def same_code(expected: str, typed: str) -> bool:
    """Return True if the typed code is the expected one; compares in constant time."""
    return hmac.compare_digest(expected.encode(), plain_code(typed).encode("utf-8", "surrogatepass"))

"""Text in an encoding, which is read as what it says."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterator
from typing import Final

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}+={0,2}")
_READABLE: Final = 0.9


def decoded_in(text: str) -> Iterator[str]:
    """Yield the readable texts that a text holds in base64, plain or for URLs."""
    for match in _ENCODED.finditer(text):
        written = match.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = b64decode(written + "=" * (-len(written) % 4), validate=True).decode()
        except (NoBase64, ValueError):
            continue
        if sum(char.isprintable() or char.isspace() for char in plain) >= _READABLE * len(plain):
            yield plain

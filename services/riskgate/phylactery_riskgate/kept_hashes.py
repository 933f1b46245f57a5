"""Hashes of whole arguments as rows keep them: keyed, so that no guess at a call can be tried against the database.

A plain hash of a call that leaves few possibilities tells the call, and rows outlive the values that are erased. With a
key that lies in no table the same call is still known again, by this RiskGate alone. Rows of before version 0008 hold
plain hashes, which their records hold too, for ever: they are compared as they are.
"""

from __future__ import annotations

from phylactery_riskgate.codes import hmac_sha256
from phylactery_riskgate.domain.canonical import canonical_bytes

_PURPOSE = "phylactery-kept-hashes-v1"
_PLAIN = "sha256:"


class KeptHashes:
    """Turns plain hashes of one user's calls of one tool into kept ones; the same call of others is kept as another."""

    def __init__(self, data_key: bytes) -> None:
        """Takes the data key, from which its own is derived."""
        self._key = hmac_sha256(data_key, _PURPOSE.encode())

    def keep(self, tenant: str, subject: str, tool: str, plain: str) -> str:
        """Answers what a row keeps of a plain hash; nothing of none."""
        if not plain:
            return ""
        return "hmac-sha256:" + hmac_sha256(self._key, canonical_bytes([tenant, subject, tool, plain])).hex()

    def same(self, kept: str, tenant: str, subject: str, tool: str, plain: str) -> bool:
        """Says whether a row keeps this hash."""
        return kept == (plain if kept.startswith(_PLAIN) else self.keep(tenant, subject, tool, plain))

"""KeyService's messages."""

from __future__ import annotations

import json

from phylactery.riskgate.v1 import key_pb2

from phylactery_riskgate.keys import PublicKey


def public_key(key: PublicKey) -> key_pb2.Key:
    """Encodes a public key."""
    return key_pb2.Key(
        kid=key.kid,
        jwk=json.dumps(key.jwk, sort_keys=True, separators=(",", ":")),
        state=key_pb2.KeyState.Value(f"KEY_STATE_{key.state}"),
    )

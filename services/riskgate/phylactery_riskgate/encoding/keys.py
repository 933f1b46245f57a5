"""KeyService's messages."""

from __future__ import annotations

import hashlib
import json

from google.protobuf.duration_pb2 import Duration
from phylactery.riskgate.v1 import key_pb2
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_riskgate.keys import PublicKey
from phylactery_riskgate.live_keys import LiveKeys

MAX_AGE_SECONDS = 60


def listed(keys: LiveKeys, issuer: str, etag: str) -> key_pb2.ListKeysResponse:
    """Encodes the keys of this moment, or that they are still those of the etag."""
    stale = bool(keys.problem)
    response = key_pb2.ListKeysResponse(
        keys=[public_key(key) for key in keys.ring.public],
        issuer=issuer,
        max_age=Duration(seconds=MAX_AGE_SECONDS),
        stale=stale,
    )
    response.etag = hashlib.sha256(response.SerializeToString(deterministic=True)).hexdigest()[:32]
    if etag == response.etag:
        response.ClearField("keys")
        response.not_modified = True
    return response


def public_key(key: PublicKey) -> key_pb2.Key:
    """Encodes a public key."""
    encoded = key_pb2.Key(
        kid=key.kid,
        jwk=json.dumps(key.jwk, sort_keys=True, separators=(",", ":")),
        state=key_pb2.KeyState.Value(f"KEY_STATE_{key.state}"),
    )
    for name, when_us in (
        ("create_time", key.create_us),
        ("retire_time", key.retire_us),
        ("revoke_time", key.revoke_us),
    ):
        if when_us:
            getattr(encoded, name).CopyFrom(to_timestamp(when_us))
    return encoded

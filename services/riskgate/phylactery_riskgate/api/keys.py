"""KeyService: servicer and message mapping."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from google.protobuf.duration_pb2 import Duration
from grpc import aio
from phylactery.riskgate.v1 import key_pb2, key_pb2_grpc
from phylactery_chassis.rpc.validation import EdgeModel, from_message
from phylactery_chassis.util.timestamps import to_timestamp
from pydantic import StringConstraints

from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.keys.ring import PublicKey

MAX_AGE_SECONDS = 60


def listed(keys: LiveKeys, issuer: str, etag: str) -> key_pb2.ListKeysResponse:
    """Encode the current keys, or not_modified if the etag still matches."""
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
    """Encode a public key."""
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


class ListKeysInput(EdgeModel):
    """The etag of the answer the caller already has."""

    etag: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{0,64}$")] = ""


Context = aio.ServicerContext[Any, Any]


class KeyServicer(key_pb2_grpc.KeyServiceServicer):
    """gRPC servicer of phylactery.riskgate.v1.KeyService."""

    def __init__(self, keys: LiveKeys, issuer: str) -> None:
        self._keys, self._issuer = keys, issuer

    async def ListKeys(self, request: key_pb2.ListKeysRequest, _context: Context) -> key_pb2.ListKeysResponse:
        """Return every public key, the active one first, or not_modified."""
        asked = from_message(ListKeysInput, request)
        return listed(self._keys, self._issuer, asked.etag)

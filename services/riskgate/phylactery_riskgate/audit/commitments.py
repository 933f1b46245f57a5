"""Values of a record: a call's arguments and the hashes of them, stored where they can be erased."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phylactery_chassis.util.crypto import hmac_sha256, keyed_hash

from phylactery_riskgate.audit.log import pointer_of
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.model import BoundCall, Verdict

ARGUMENTS, RAW_ARGUMENTS, PLAN_STEP, WORDS = "/arguments", "/raw_arguments", "/plan_step", "/reason"
"""JSON Pointers, or pointer prefixes, of the values of a record."""
NULLS = "/nulls"
"""JSON Pointer of the pointers of the nulls that were left out of the arguments; a record without any has none."""
ARGS_HASH, RAW_ARGS_HASH, CLAIMED_HASH = "/args_hash", "/raw_args_hash", "/claimed_raw_args_hash"
"""JSON Pointers of hashes of whole arguments: erasable, since a call with few possible values is found by its hash."""
ARGS_COMMITMENT = "args_commitment"
"""Field in which a record repeats the commitment at ARGS_HASH of the call's decision record."""


def argument_values(bound: BoundCall | None) -> dict[str, Any]:
    """Return the bound arguments as values of a record."""
    if bound is None:
        return {}
    left_out = {NULLS: list(bound.nulls)} if bound.nulls else {}
    return {ARGUMENTS + pointer_of(name): value for name, value in bound.arguments.items()} | left_out


def bound_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bound arguments among the values of a record."""
    names = (pointer for pointer in values if pointer.startswith(ARGUMENTS + "/"))
    return {name_of(pointer): values[pointer] for pointer in names}


def hash_values(verdict: Verdict) -> dict[str, str]:
    """Return the hashes of whole arguments, bound and raw, as values of a record."""
    bound = verdict.bound.args_hash if verdict.bound else ""
    raw = "" if verdict.raw_args_hash == bound else verdict.raw_args_hash  # each value takes time in every decision
    return {pointer: plain for pointer, plain in ((ARGS_HASH, bound), (RAW_ARGS_HASH, raw)) if plain}


def name_of(pointer: str) -> str:
    """Return the name of the argument at a pointer of a record."""
    return pointer.removeprefix(ARGUMENTS + "/").replace("~1", "/").replace("~0", "~")


_PURPOSE = "phylactery-kept-hashes-v1"
_PLAIN = "sha256:"


class KeyedHashes:
    """Keyed hashes of one user's calls of one tool; the same call of another user has a different hash."""

    def __init__(self, data_key: bytes) -> None:
        """Derive the hash key from the data key."""
        self._key = hmac_sha256(data_key, _PURPOSE.encode())

    def keep(self, tenant: str, subject: str, tool: str, plain: str) -> str:
        """Return the stored form of a plain hash; empty for an empty one."""
        if not plain:
            return ""
        return keyed_hash(self._key, canonical_bytes([tenant, subject, tool, plain]))

    def same(self, kept: str, tenant: str, subject: str, tool: str, plain: str) -> bool:
        """Return True if the stored hash is that of ``plain``."""
        return kept == (plain if kept.startswith(_PLAIN) else self.keep(tenant, subject, tool, plain))

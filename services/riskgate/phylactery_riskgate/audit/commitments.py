"""A call as the values of a record: its arguments, and the hashes of all of them, where they can be erased."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from phylactery_riskgate.approvals.codes import hmac_sha256
from phylactery_riskgate.audit.log import pointer_of
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.model import BoundCall, Verdict

ARGUMENTS, RAW_ARGUMENTS, PLAN_STEP, WORDS = "/arguments", "/raw_arguments", "/plan_step", "/reason"
"""Where the values of a record stand: each a JSON Pointer, or the beginning of one."""
ARGS_HASH, RAW_ARGS_HASH, CLAIMED_HASH = "/args_hash", "/raw_args_hash", "/claimed_raw_args_hash"
"""Where its hashes of whole arguments stand: values, too, for a call of which few are possible is found by its hash."""
ARGS_COMMITMENT = "args_commitment"
"""The name in a record under which it repeats what the record of a call's decision has at ARGS_HASH."""


def argument_values(bound: BoundCall | None) -> dict[str, Any]:
    """Return the bound arguments as the values of a record."""
    if bound is None:
        return {}
    return {ARGUMENTS + pointer_of(name): value for name, value in bound.arguments.items()}


def bound_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the bound arguments that stand among the values of a record."""
    names = (pointer for pointer in values if pointer.startswith(ARGUMENTS + "/"))
    return {name_of(pointer): values[pointer] for pointer in names}


def hash_values(verdict: Verdict) -> dict[str, str]:
    """Return the hashes of whole arguments as the values of a record: of the bound ones, and of others that came."""
    bound = verdict.bound.args_hash if verdict.bound else ""
    raw = "" if verdict.raw_args_hash == bound else verdict.raw_args_hash  # each value costs a decision time
    return {pointer: plain for pointer, plain in ((ARGS_HASH, bound), (RAW_ARGS_HASH, raw)) if plain}


def hash_of(data: bytes) -> str:
    """Return a hash as every contract writes it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def name_of(pointer: str) -> str:
    """Return the argument whose value stands at a pointer of a record."""
    return pointer.removeprefix(ARGUMENTS + "/").replace("~1", "/").replace("~0", "~")


_PURPOSE = "phylactery-kept-hashes-v1"
_PLAIN = "sha256:"


class KeptHashes:
    """Turns plain hashes of one user's calls of one tool into kept ones; the same call of others is kept as another."""

    def __init__(self, data_key: bytes) -> None:
        """Take the data key, from which its own is derived."""
        self._key = hmac_sha256(data_key, _PURPOSE.encode())

    def keep(self, tenant: str, subject: str, tool: str, plain: str) -> str:
        """Return what a row keeps of a plain hash; nothing of none."""
        if not plain:
            return ""
        return "hmac-sha256:" + hmac_sha256(self._key, canonical_bytes([tenant, subject, tool, plain])).hex()

    def same(self, kept: str, tenant: str, subject: str, tool: str, plain: str) -> bool:
        """Return whether a row keeps this hash."""
        return kept == (plain if kept.startswith(_PLAIN) else self.keep(tenant, subject, tool, plain))

"""Store of bundles: every bundle that was ever active, by hash, and the heads of the two slots."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.errors import DataLoss
from sqlalchemy.engine import Connection

from phylactery_riskgate.store.tables import bundle_activations, bundle_heads, bundles, from_json, row_of, to_json

_MAX_BYTES = 8 * 1_048_576
"""Maximum size of a stored bundle, with room for JSON escapes."""


class Slot(StrEnum):
    """The role of an active bundle."""

    LIVE = "live"
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True)
class BundleHead:
    """The active bundle of a slot and its activation; revision 0 if there is none.

    ``source`` is "folder", "activation" or "rollback", ``signed_by`` the thumbprint of the policy key whose signature
    was verified. ``number`` counts the activations of the slot.
    """

    revision: int
    hash: str
    source: str = ""
    signed_by: str = ""
    activate_us: int = 0
    activated_by: str = ""
    number: int = 0


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation in a slot: the new head, and the tenant of the person, empty for RiskGate itself."""

    slot: Slot
    head: BundleHead
    tenant: str


def find_head(connection: Connection, slot: Slot, *, lock: bool = False) -> BundleHead:
    """Return the head of a slot; with lock, other activations are excluded until the commit."""
    query = sa.select(bundle_heads).where(bundle_heads.c.slot == str(slot))
    row = connection.execute(query.with_for_update() if lock else query).one()._asdict()
    del row["slot"]
    return BundleHead(**row)


def move_head(connection: Connection, slot: Slot, head: BundleHead, tenant: str = "") -> None:
    """Activate another bundle in a slot, and add the activation to the history."""
    row = row_of(head)
    connection.execute(sa.update(bundle_heads).where(bundle_heads.c.slot == str(slot)).values(**row))
    connection.execute(sa.insert(bundle_activations).values(slot=str(slot), activated_by_tenant=tenant, **row))


def list_activations(connection: Connection, limit: int) -> list[Activation]:
    """Return the latest activations of both slots, newest first."""
    columns = bundle_activations.c
    query = sa.select(bundle_activations).order_by(columns.activate_us.desc(), columns.number.desc(), columns.slot)
    return [_activation(row) for row in connection.execute(query.limit(limit))]


def decided_before(connection: Connection, revision: int) -> str:
    """Return the hash of the bundle that was live under this revision, or an empty string."""
    columns = bundle_activations.c
    query = sa.select(columns.hash).where(columns.slot == str(Slot.LIVE), columns.revision == revision).limit(1)
    return str(connection.execute(query).scalar_one_or_none() or "")


def find_before(connection: Connection, bundle_hash: str) -> Activation | None:
    """Return the last bundle that was live before this one first was, or None."""
    columns = bundle_activations.c
    live = columns.slot == str(Slot.LIVE)
    first = sa.select(sa.func.min(columns.number)).where(live, columns.hash == bundle_hash).scalar_subquery()
    query = sa.select(bundle_activations).where(live, columns.number < first).order_by(columns.number.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _activation(row)


def find_revision(connection: Connection, bundle_hash: str) -> int:
    """Return the revision of a stored bundle, or 0."""
    query = sa.select(bundles.c.revision).where(bundles.c.hash == bundle_hash)
    return int(connection.execute(query).scalar_one_or_none() or 0)


def _activation(row: sa.Row[Any]) -> Activation:
    values = row._asdict()
    slot, tenant = Slot(values.pop("slot")), values.pop("activated_by_tenant")
    return Activation(slot, BundleHead(**values), tenant)


def keep_bundle(connection: Connection, bundle_hash: str, revision: int, files: dict[str, str], now_us: int) -> None:
    """Store the files of a bundle, with their signature; files already stored are replaced.

    The hash does not cover the signature, so a bundle with a new signature is the same bundle.
    """
    packed = zlib.compress(to_json(files))
    renewed = connection.execute(sa.update(bundles).where(bundles.c.hash == bundle_hash).values(files=packed))
    if not renewed.rowcount:
        row = {"hash": bundle_hash, "revision": revision, "files": packed, "create_us": now_us}
        connection.execute(sa.insert(bundles).values(**row))


def find_files(connection: Connection, bundle_hash: str) -> dict[str, str] | None:
    """Return the files of a bundle by name, or None if it is not stored. Raise DataLoss if the row was altered."""
    packed = connection.execute(sa.select(bundles.c.files).where(bundles.c.hash == bundle_hash)).scalar_one_or_none()
    if packed is None:
        return None
    try:
        files: dict[str, str] = from_json(zlib.decompressobj().decompress(packed, _MAX_BYTES))
    except (zlib.error, ValueError, TypeError):
        raise DataLoss("INTERNAL", f"the stored bundle {bundle_hash} is damaged: restore a backup") from None
    return files

"""Opening of an audit log: data of earlier versions, without kept heads or vote proofs, is adopted on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from phylactery_chassis.telemetry.logs import get_logger
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.vote_proofs import VoteProofs, adopt_votes
from phylactery_riskgate.audit.heads import KeptHead
from phylactery_riskgate.audit.log import SYSTEM_PRINCIPAL, AuditLog, Entry, Kind

_log = get_logger("audit")


def open_log(
    connection: Connection, audit: AuditLog, proofs: VoteProofs, *, believed: Iterable[bytes], now_us: int
) -> None:
    """Open a log within a write; call AuditLog.opened after the commit. Raise as AuditLog.open does."""
    first = audit.first_start
    heads = audit.open(connection, believed)
    votes = adopt_votes(connection, proofs) if first else 0
    if not heads and not votes:
        return
    body = adoption_body(heads) | {"votes": votes}
    _log.warning("no head was stored outside the database before: the log is adopted", **body)
    audit.append(connection, Entry(Kind.HEADS_ADOPTED, now_us, SYSTEM_PRINCIPAL, body))


def adoption_body(heads: Mapping[str, KeptHead]) -> dict[str, Any]:
    """Return the fields of a record about adopted logs."""
    logs = {name: {"size": head.size, "root_hash": head.root.hex()} for name, head in heads.items()}
    return {"logs": logs, "votes": 0}

"""SQL of retention: an emptied entry keeps its leaf hash and time, an emptied call its place."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import ApprovalState
from phylactery_riskgate.store import locks
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.audit_search import SYSTEM_TENANT
from phylactery_riskgate.store.decisions import PERMITS_OVER, CallKey
from phylactery_riskgate.store.notices import erase_about
from phylactery_riskgate.store.redemptions import find_redemption, outcome_reports
from phylactery_riskgate.store.tables import (
    approval_changes,
    approval_votes,
    approvals,
    audit_entries,
    audit_logs,
    audit_values,
    decisions,
    outcomes,
    redemptions,
    to_json,
)

EMPTIED = "(emptied)"
"""Tenant and kind of an emptied entry: tenant names contain no parentheses, so no list or search finds it."""

_OPEN = (str(ApprovalState.PENDING), str(ApprovalState.APPROVED))
_IN_DOUBT = "IN_DOUBT"
_EMPTY = (
    sa.update(audit_entries)
    .where(audit_entries.c.log == sa.bindparam("at_log"), audit_entries.c.position == sa.bindparam("at_index"))
    .values(record=b"", tenant=EMPTIED, subject="", kind=EMPTIED, decision_id="")
)
_DROP_VALUES = sa.delete(audit_values).where(
    audit_values.c.log == sa.bindparam("at_log"), audit_values.c.position == sa.bindparam("at_index")
)
_D, _A = decisions.c, approvals.c


def take_turn(connection: Connection) -> None:
    """Exclude other retention runs until the commit. Raise BusyError."""
    locks.take(connection, "retention")


def next_tenant(connection: Connection, after: str) -> str:
    """Return the next tenant with entries, by name, or an empty string; one index lookup."""
    column = audit_entries.c.tenant
    found = connection.execute(sa.select(sa.func.min(column)).where(column > (after or SYSTEM_TENANT))).scalar()
    return next_tenant(connection, EMPTIED) if found == EMPTIED else found or ""


def newest_us(connection: Connection) -> int:
    """Return the time of the newest entry of all logs, or 0."""
    return int(connection.execute(sa.select(sa.func.max(audit_logs.c.last_us))).scalar() or 0)


def needed(connection: Connection, key: CallKey, before_us: int) -> bool:
    """Return True if a call is not finished, or something happened to it at this time or later.

    It is not finished while its approval is open, its effect is in doubt or unreported, or its newest permit is
    younger. A tenant's newest approval change stays too: watches derive their positions from it.
    """
    redemption = find_redemption(connection, key)
    if redemption is not None:
        reports = outcome_reports(connection, key.tenant, key.subject, redemption.execution_id)
        if not reports or reports[-1][0].outcome == _IN_DOUBT or redemption.redeem_us >= before_us:
            return True
    found = connection.execute(
        sa.select(_D.create_us, _D.permit_us, _D.approval_id, _D.counted_approval_id).where(*_of_call(key))
    ).all()
    asked = {one for row in found for one in (row.approval_id, row.counted_approval_id)} - {""}
    if any(max(row.create_us, row.permit_us) >= before_us for row in found):
        return True
    return any(_stays(connection, key.tenant, one, before_us) for one in asked)


def _stays(connection: Connection, tenant: str, approval_id: str, before_us: int) -> bool:
    query = sa.select(_A.state, _A.expire_us, _A.decide_us).where(_A.tenant == tenant, _A.id == approval_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        return False
    if max(row.decide_us, row.expire_us if row.state in _OPEN else 0) >= before_us:
        return True
    column = approval_changes.c
    newest = sa.select(column.approval_id).where(column.tenant == tenant).order_by(column.position.desc()).limit(1)
    return connection.execute(newest).scalar() == approval_id


def empty_entries(connection: Connection, places: Sequence[Place]) -> None:
    """Empty entries except for their leaf hash and time."""
    at = [{"at_log": place.log, "at_index": place.index} for place in places]
    connection.execute(_EMPTY, at)
    connection.execute(_DROP_VALUES, at)


def empty_call(connection: Connection, key: CallKey) -> None:
    """Empty the rows of a call. A redeemed or revoked one keeps its place: it never runs again."""
    asked = [row[0] for row in connection.execute(sa.select(_D.approval_id).where(*_of_call(key))) if row[0]]
    for table, column in (
        (approval_votes, approval_votes.c.approval_id),
        (approval_changes, approval_changes.c.approval_id),
        (approvals, approvals.c.id),
    ):
        if asked:
            connection.execute(sa.delete(table).where(table.c.tenant == key.tenant, column.in_(asked)))
    erase_about(connection, key.tenant, asked)
    redemption = find_redemption(connection, key)
    if redemption is None:
        connection.execute(sa.delete(decisions).where(*_of_call(key), _D.revoke_us == 0))
    else:
        of_execution = {"tenant": key.tenant, "subject": key.subject, "execution_id": redemption.execution_id}
        erase_about(connection, key.tenant, [redemption.execution_id])
        no_result = {"result_hash": "", "result_size": 0, "error_code": ""}
        for table, emptied in ((redemptions, {"receipt_claims": to_json({})}), (outcomes, no_result)):
            which = (table.c[name] == value for name, value in of_execution.items())
            connection.execute(sa.update(table).where(*which).values(emptied))
    texts = ("thread_id", "fingerprint", "tool", "tool_version", "args_hash", "args_commitment", "risk")
    blank: dict[str, object] = dict.fromkeys((*texts, "approval_id", "permit_id"), "")
    blank |= {"permit_us": PERMITS_OVER, "reasons": to_json([]), "policy_ids": to_json([])}
    connection.execute(sa.update(decisions).where(*_of_call(key)).values(blank))


def is_emptied(connection: Connection, place: Place) -> bool:
    """Return True if an entry of a log was emptied."""
    columns = audit_entries.c
    query = sa.select(columns.tenant).where(columns.log == place.log, columns.position == place.index)
    return connection.execute(query).scalar() == EMPTIED


def _of_call(key: CallKey) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(_D[name] == value for name, value in key._asdict().items())

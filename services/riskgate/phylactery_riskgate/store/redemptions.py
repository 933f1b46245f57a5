"""Store of redemptions, at most one per bound call, and of their reported outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns, Form
from phylactery_chassis.db.statements import Query, RowInsert
from sqlalchemy.engine import Connection

from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.decisions import CallKey
from phylactery_riskgate.store.pending import Gathered, Keys
from phylactery_riskgate.store.tables import from_json, outcomes, redemptions, to_json


@dataclass(frozen=True, slots=True)
class Redemption:
    """A redeemed call: its execution, and the claims of its receipt except the hash of the arguments."""

    tenant: str
    subject: str
    run_id: str
    tool_call_id: str
    execution_id: str
    decision_id: str
    receipt_claims: Mapping[str, Any]
    redeem_us: int
    audit_log: str
    audit_index: int
    low_stakes: bool = False
    """Whether nothing but its low stakes allowed the call, so that the person is to be told of it."""


class Reversal(NamedTuple):
    """What became of an effect that an execution was to take back: UNDONE, LEFT or FAILED."""

    execution_id: str
    result: str
    error_code: str


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """The reported outcome of an execution, and what it took back."""

    outcome: str
    result_hash: str
    result_size: int
    error_code: str
    reversals: tuple[Reversal, ...] = ()


_REDEMPTION = Columns(Redemption, redemptions, forms={"receipt_claims": Form(from_json, to_json)})
_OF_USER = sa.select(*_REDEMPTION.columns).where(
    redemptions.c.tenant == sa.bindparam("tenant"), redemptions.c.subject == sa.bindparam("subject")
)
_BY_CALL = Query(
    _OF_USER.where(
        redemptions.c.run_id == sa.bindparam("run_id"), redemptions.c.tool_call_id == sa.bindparam("tool_call_id")
    )
)
_OF_EXECUTION = _OF_USER.where(redemptions.c.execution_id == sa.bindparam("execution_id"))
_BY_EXECUTION, _BY_EXECUTION_LOCKED = Query(_OF_EXECUTION), Query(_OF_EXECUTION.with_for_update())
_INSERT = RowInsert(redemptions, *_REDEMPTION.names)
_REPORTS = Query(
    sa.select(outcomes)
    .where(
        outcomes.c.tenant == sa.bindparam("tenant"),
        outcomes.c.subject == sa.bindparam("subject"),
        outcomes.c.execution_id == sa.bindparam("execution_id"),
    )
    .order_by(outcomes.c.number)
)
_INSERT_OUTCOME = RowInsert(
    outcomes,
    "tenant",
    "subject",
    "execution_id",
    "number",
    "outcome",
    "result_hash",
    "result_size",
    "error_code",
    "report_us",
    "audit_log",
    "audit_index",
    "reversals",
)


def _keys(redemption: Redemption) -> Keys:
    call = CallKey(redemption.tenant, redemption.subject, redemption.run_id, redemption.tool_call_id)
    return call, (redemption.tenant, redemption.subject, redemption.execution_id)


def _write(connection: Connection, made: Sequence[Redemption]) -> None:
    _INSERT.run(connection, [_REDEMPTION.values(redemption) for redemption in made])


_gathered = Gathered(_keys, _write)


def insert_redemption(connection: Connection, redemption: Redemption) -> None:
    """Insert a redemption, together with the rest of the unit of work at its end.

    That raises IntegrityError if another process redeemed the call first.
    """
    _gathered.add(connection, redemption)


def find_redemption(connection: Connection, key: CallKey) -> Redemption | None:
    """Return the redemption of this call, or None."""
    found = _gathered.find(connection, key)
    return found or _found(_BY_CALL.one(connection, key._asdict()))


def find_execution(
    connection: Connection, tenant: str, subject: str, execution_id: str, *, lock: bool = False
) -> Redemption | None:
    """Return what an execution redeemed; with lock, other writers are excluded until the commit."""
    found = _gathered.find(connection, (tenant, subject, execution_id))
    query = _BY_EXECUTION_LOCKED if lock else _BY_EXECUTION
    values = {"tenant": tenant, "subject": subject, "execution_id": execution_id}
    return found or _found(query.one(connection, values))


def without_outcome(connection: Connection, tenant: str, *, before_us: int, limit: int) -> list[Redemption]:
    """Return calls redeemed before a time without a reported outcome, oldest first."""
    reported = sa.exists().where(
        outcomes.c.tenant == redemptions.c.tenant,
        outcomes.c.subject == redemptions.c.subject,
        outcomes.c.execution_id == redemptions.c.execution_id,
    )
    query = (
        sa.select(*_REDEMPTION.columns)
        .where(redemptions.c.tenant == tenant, redemptions.c.redeem_us < before_us, ~reported)
        .order_by(redemptions.c.redeem_us, redemptions.c.execution_id)
        .limit(limit)
    )
    return [_REDEMPTION.load(row) for row in connection.execute(query)]


def outcome_reports(
    connection: Connection, tenant: str, subject: str, execution_id: str
) -> list[tuple[OutcomeReport, Place]]:
    """Return every report about an execution with its place in an audit log, oldest first."""
    asked = {"tenant": tenant, "subject": subject, "execution_id": execution_id}
    return [
        (
            OutcomeReport(
                row.outcome,
                row.result_hash,
                row.result_size,
                row.error_code,
                tuple(Reversal(*one) for one in json.loads(row.reversals)),
            ),
            Place(row.audit_log, row.audit_index),
        )
        for row in _REPORTS.all(connection, asked)
    ]


def insert_outcome(
    connection: Connection, of: Redemption, number: int, report: OutcomeReport, *, now_us: int, place: Place
) -> None:
    """Insert an outcome report."""
    row = (
        of.tenant,
        of.subject,
        of.execution_id,
        number,
        report.outcome,
        report.result_hash,
        report.result_size,
        report.error_code,
        now_us,
        place.log,
        place.index,
        json.dumps(report.reversals),
    )
    _INSERT_OUTCOME.run(connection, [row])


def _found(row: Sequence[Any] | None) -> Redemption | None:
    return None if row is None else _REDEMPTION.load(row)

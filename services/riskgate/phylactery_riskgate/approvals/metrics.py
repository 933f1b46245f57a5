"""Metrics of approvals that wait for a person: how many there are, and how long the oldest has waited."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.metrics import Observation
from phylactery_chassis.db.gauges import StoreGauges
from phylactery_chassis.util.clock import MICROSECONDS
from sqlalchemy.engine import Connection

from phylactery_riskgate.store.approvals import pending_everywhere

_gauges = StoreGauges()
watch = _gauges.watch


def _waiting(connection: Connection, now_us: int) -> Iterable[Observation]:
    return [Observation(pending_everywhere(connection, now_us)[0])]


def _oldest(connection: Connection, now_us: int) -> Iterable[Observation]:
    count, since_us = pending_everywhere(connection, now_us)
    return [Observation(max(0, now_us - since_us) / MICROSECONDS if count else 0.0)]


_gauges.create_gauge(
    "riskgate.approvals.waiting", "{approval}", "approvals that wait for a person, of all tenants", _waiting
)
_gauges.create_gauge(
    "riskgate.approvals.oldest_age",
    "s",
    "how long the oldest approval has waited for a person; 0 if none does",
    _oldest,
)

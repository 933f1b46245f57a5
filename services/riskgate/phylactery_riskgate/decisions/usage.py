"""Budget counters: updated in the transaction that redeems a call (ADR 12), and read by decisions.

A window is rolling, and its time is monotonic: the clock's, or that of the newest call counted under the same key if
the clock is behind it. In every period of that time as long as the window, redeemed calls stay within the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.crypto import hmac_sha256
from sqlalchemy.engine import Connection

from phylactery_riskgate.domain.canonical import canonical_bytes, hash_json
from phylactery_riskgate.domain.model import BoundCall, Budget, CallSite, CatalogTool, Counters
from phylactery_riskgate.domain.policy.usage import (
    LINE_OWED,
    UNDO_FAILED,
    Charge,
    UsageReader,
    amount_text,
    charge_of,
    read_amount,
)
from phylactery_riskgate.store import undo
from phylactery_riskgate.store import usage as rows
from phylactery_riskgate.store.usage import CallCount, CounterKey

USAGE = "/usage"
"""JSON Pointer prefix of a record's budget counts, one pointer per budget."""

KEEP_SECONDS = 86_400
"""Retention of a count beyond its window: a clock that ran ahead for a day, and was set back, loses no counts."""

_SO = Counters(1, 0, 0, 0)
"""What is recorded of something that is so, in the form of a budget's counts."""
_PURPOSE = "phylactery-usage-v1"


class Counting:
    """The counters of all budgets."""

    def __init__(self, data_key: bytes) -> None:
        """Derive the key that recipients and currencies are hashed with."""
        self._key = hmac_sha256(data_key, _PURPOSE.encode())

    def reader(
        self, connection: Connection, who: Principal, site: CallSite, now_us: int, *, lock: bool = False
    ) -> UsageReader:
        """Return a function that reads the counters for a decision.

        With lock, they cannot change until the commit; raise BusyError if another replica holds the lock.
        """

        def read(tool: CatalogTool, charge: Charge) -> Mapping[str, Counters]:
            places = {budget: _key_of(budget, who, site, tool) for budget in tool.budgets}
            for at in places.values() if lock else ():
                rows.lock(connection, at)
            counted = {
                budget.name: self._counters(connection, budget, at, charge, now_us) for budget, at in places.items()
            }
            if undo.has_failed(connection, who.tenant, tool.name, who.subject):
                counted[UNDO_FAILED] = _SO
            if undo.is_owed(connection, who.tenant, who.subject, site.run_id):
                counted[LINE_OWED] = _SO
            return counted

        return read

    def count(
        self,
        connection: Connection,
        who: Principal,
        site: CallSite,
        tool: CatalogTool,
        bound: BoundCall,
        *,
        receipt_id: str,
        now_us: int,
    ) -> None:
        """Count a redeemed call in every budget of its tool; the same transaction has locked the counters."""
        if not tool.budgets:
            return
        charge = charge_of(tool, bound)
        for budget in tool.budgets:
            at = _key_of(budget, who, site, tool)
            when = rows.counter_time(connection, at, now_us)
            window_us = budget.window_seconds * MICROSECONDS
            rows.forget_before(connection, at, when - window_us)
            call = CallCount(receipt_id, when, when + window_us, self._hidden(at, charge.currency), charge.amount)
            rows.count_call(connection, at, call, [self._hidden(at, one) for one in charge.recipients])

    def prune(self, connection: Connection, now_us: int) -> int:
        """Drop counts that left their window a day ago or more; return how many."""
        return rows.prune(connection, now_us - KEEP_SECONDS * MICROSECONDS)

    def _counters(
        self, connection: Connection, budget: Budget, at: CounterKey, charge: Charge, now_us: int
    ) -> Counters:
        since_us = rows.counter_time(connection, at, now_us) - budget.window_seconds * MICROSECONDS
        recipients = [self._hidden(at, one) for one in charge.recipients]
        found = rows.counted_since(connection, at, since_us, self._hidden(at, charge.currency), recipients)
        return Counters(found.calls, found.amount, found.recipients, len(recipients) - found.known)

    def _hidden(self, at: CounterKey, value: str) -> str:
        """Return a keyed hash of a value, different for every counter key."""
        return hmac_sha256(self._key, canonical_bytes([at.tenant, at.budget, at.key, value])).hex()


def usage_values(usage: Mapping[str, Counters]) -> dict[str, Any]:
    """Return the budget counts of a decision as values of a record, erasable because a sum can reveal an argument."""
    return {
        f"{USAGE}/{budget}": {
            "calls": counted.calls,
            "amount": amount_text(counted.amount),
            "recipients": counted.recipients,
            "new_recipients": counted.new_recipients,
        }
        for budget, counted in usage.items()
    }


def recorded_usage(values: Mapping[str, Any]) -> dict[str, Counters]:
    """Parse what usage_values wrote: with it, the same call decides the same again."""
    found = {
        pointer.removeprefix(f"{USAGE}/"): value for pointer, value in values.items() if pointer.startswith(f"{USAGE}/")
    }
    return {
        name: Counters(value["calls"], read_amount(value["amount"]), value["recipients"], value["new_recipients"])
        for name, value in found.items()
    }


def _key_of(budget: Budget, who: Principal, site: CallSite, tool: CatalogTool) -> CounterKey:
    """Return the key of the counters that a call moves.

    A thread belongs to its user: another user who names the same thread has separate counters.
    """
    apart = {
        "thread": [who.subject, site.thread_id],
        "user": who.subject,
        "tool": tool.name,
    }
    return CounterKey(who.tenant, budget.name, hash_json({name: apart[name] for name in budget.per}))

"""How the sinks do: what waits for each, and why one takes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from phylactery_riskgate.notices.config import Notices, Sink
from phylactery_riskgate.notices.model import SinkRow
from phylactery_riskgate.store import notices as rows
from phylactery_riskgate.store.notices import Counts

HEALTHY = frozenset({"ok", "unused"})
"""The states in which nothing is to be done."""


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """One sink: its state, and what is known of its notices. Times are microseconds since the epoch, 0 if not set.

    ``state`` is ok, unused, failing, disabled, "changed" (not started with these settings yet), or "not configured":
    something waits for a sink that the file does not have.
    """

    name: str
    kind: str
    place: str
    state: str
    counts: Counts
    taken_us: int
    failing_us: int
    code: str
    message: str


def status_of(connection: Connection, notices: Notices, now_us: int) -> list[SinkStatus]:
    """Return the sinks of the file, and those for which something waits, by name."""
    counts = rows.counts_of(connection, now_us)
    known = {one.name: one for one in rows.sinks_of(connection)}
    named = notices.by_name
    names = sorted({*named, *(name for name, one in counts.items() if one.waiting or one.dropped)})
    return [_status(name, named.get(name), known.get(name), counts.get(name, Counts())) for name in names]


def _status(name: str, sink: Sink | None, known: SinkRow | None, counts: Counts) -> SinkStatus:
    state = "ok" if known and known.ok_us else "unused"
    if known and known.fails:
        state = "failing"
    if known and known.disabled_us:
        state = "disabled"
    if sink is None:
        state = "not configured" if counts.waiting else "unused"
    elif known is not None and known.fingerprint != sink.fingerprint:
        state = "changed"
    return SinkStatus(
        name,
        sink.kind if sink else "",
        sink.place if sink else "",
        state,
        counts,
        known.ok_us if known else 0,
        known.fail_us if known else 0,
        known.error if known else "",
        known.told if known else "",
    )

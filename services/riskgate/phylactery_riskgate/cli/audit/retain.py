"""`riskgate audit retain`: empties old records of calls manually, or only counts them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.util.clock import MICROSECONDS
from sqlalchemy.engine import Connection

from phylactery_riskgate.cli.audit.remote import moment_of
from phylactery_riskgate.cli.common import FAILED, NO_DATABASE, AsJson, DataDir, settings_of, tell, unusable, warn
from phylactery_riskgate.cli.keys import database_here, retain
from phylactery_riskgate.privacy.retention import Retained, next_step
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store.audit_search import Position

_BEFORE = "a time such as 90d or 2026-01-31; none is RISKGATE_RETAIN_DECISIONS_DAYS ago"


def retain_before(
    before: Annotated[str, typer.Option("--before", help=_BEFORE)] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="show what would be emptied without changing anything")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask again")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Permanently empty older records of calls, for every tenant; the logs still verify.

    Leaf hashes and signed heads are kept, as is data needed by an open approval, an effect in doubt or an open task.
    Each step is recorded; an interrupted run continues when it is started again, also while RiskGate serves.
    """
    settings = settings_of(data_dir=data_dir)
    moment = _cutoff(settings, before)
    before_us = int(moment.timestamp() * MICROSECONDS)
    if not database_here(settings):
        raise unusable(f"{settings.data_dir}: {NO_DATABASE}")
    planned = _planned(settings, before_us)
    if dry_run or not planned.emptied:
        _tell(planned, moment, "would be emptied", as_json=as_json)
        return
    asked = f"Empty {planned.emptied} records of calls before {_text(moment)} permanently?"
    if not yes and not typer.confirm(asked, err=True):
        raise typer.Exit(FAILED)
    done = Retained()
    problem = retain(settings, before_us, done)
    _tell(done, moment, "emptied", as_json=as_json)
    if problem:
        warn(f"it did not complete ({problem}); emptied records are in the audit log: run it again")
        raise typer.Exit(FAILED)


def _cutoff(settings: RiskGateSettings, before: str) -> datetime:
    """Return the time before which records go. End the command where that is none, or too young."""
    if not before and not settings.retain_decisions_days:
        raise unusable("say --before, such as 90d: RISKGATE_RETAIN_DECISIONS_DAYS keeps everything")
    moment = moment_of(before or f"{settings.retain_decisions_days}d")
    days = settings.retain_days_at_least
    if moment > datetime.now(UTC) - timedelta(days=days):
        raise unusable(f"--before: records are needed for {days} days; name a time before that")
    return moment


def _planned(settings: RiskGateSettings, before_us: int) -> Retained:
    def count(connection: Connection) -> Retained:
        found = Retained()
        at: tuple[str, Position | None] = ("", None)
        while made := next_step(connection, None, at, before_us):
            found.add(made)
            at = made.next
        return found

    database = Database(settings.url)
    try:
        return database.read_sync(count)
    except (StartError, DomainError) as error:
        raise unusable(error.message if isinstance(error, DomainError) else str(error)) from None
    finally:
        database.close()


def _tell(found: Retained, moment: datetime, what: str, *, as_json: bool) -> None:
    facts = {
        "before": moment.isoformat().replace("+00:00", "Z"),
        "emptied": found.emptied,
        "calls": found.calls,
        "kept": found.kept,
        "tenants": found.tenants,
        "dry_run": what != "emptied",
    }
    kept = f"; {found.kept} stay, because something of them is not over" if found.kept else ""
    lines = [f"{found.emptied} records of {found.calls} calls before {_text(moment)} {what}{kept}"]
    lines += [f"  {tenant:24}  {count:>10}" for tenant, count in sorted(found.tenants.items())]
    tell(as_json, facts, "\n".join(lines))


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"

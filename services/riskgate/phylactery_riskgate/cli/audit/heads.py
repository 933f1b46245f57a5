"""`riskgate audit heads|adopt`: compares the database with the signed heads stored outside of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.heads import (
    NOTHING,
    HeadsDisagree,
    HeadStore,
    KeptHead,
    adopt,
    of_issuer,
    require_growth,
)
from phylactery_riskgate.audit.merkle import Frontier
from phylactery_riskgate.cli.common import (
    FAILED,
    AsJson,
    DataDir,
    keys_of,
    open_database,
    settings_of,
    tell,
    unusable,
    warn,
)
from phylactery_riskgate.cli.keys import record_adoption
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import audit as rows

T = TypeVar("T")

Log = Annotated[list[str] | None, typer.Option("--log", help="a log's name; again for several; none is all of them")]


def heads(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Compare the signed heads kept outside the database with the logs in it. Exit code 1: a log is another one."""
    settings = settings_of(data_dir=data_dir)
    found = _over_database(settings, lambda connection: _compared(connection, settings))
    lines = [f"{'log':24}  {'entries':>10}  {'kept at':>10}  what holds"]
    lines += [f"{one['log']:24}  {one['entries']:>10}  {one['kept_size']:>10}  {one['verdict']}" for one in found]
    tell(as_json, {"folder": str(settings.heads_dir), "logs": found}, "\n".join(lines))
    problems = [one["problem"] for one in found if one["problem"]]
    for problem in problems if not as_json else ():
        warn(problem)
    if problems:
        raise typer.Exit(FAILED)


def adopt_logs(
    reason: Annotated[str, typer.Option("--reason", help="why the database is right; it is recorded")],
    log: Log = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Adopt the named logs, or all that disagree, as they are in the database, regardless of earlier signed heads.

    For a database that was intentionally restored from an older backup, or newly created. Earlier heads stay in the
    files, and the adoption is recorded in the audit log.
    """
    if not reason.strip():
        raise unusable("--reason says why; it is recorded")
    settings = settings_of(data_dir=data_dir)
    store = HeadStore(settings.heads_dir, settings.keys_dir)
    found = _over_database(settings, lambda connection: _compared(connection, settings))
    names = log or [one["log"] for one in found if one["problem"]]
    strange = sorted(set(names) - {one["log"] for one in found})
    if strange:
        raise unusable(f"log '{strange[0]}' not found, neither in the database nor in the heads folder")
    signer = keys_of(settings).signer

    def work(connection: Connection) -> dict[str, KeptHead]:
        return {name: adopt(connection, store, name, signer, reason) for name in names}

    adopted = _over_database(settings, work)
    problem = record_adoption(settings, adopted, reason) if adopted else ""
    facts = [{"log": name, "entries": head.size} for name, head in adopted.items()]
    lines = [f"adopted: log '{name}' with {head.size} entries" for name, head in adopted.items()]
    told = {"adopted": facts, "recorded": bool(adopted) and not problem}
    tell(as_json, told, "\n".join(lines) or "every log is consistent with its stored head: nothing to adopt")
    if problem:
        warn(f"not in the audit log ({problem}); it is recorded in the files in {settings.heads_dir}")


def _compared(connection: Connection, settings: RiskGateSettings) -> list[dict[str, Any]]:
    """Return all logs, in the database or the heads folder, with their problems."""
    store = HeadStore(settings.heads_dir, settings.keys_dir)
    kept = {name for name in store.names() if of_issuer(name, settings.issuer)}
    last = {name: store.last(name) for name in sorted(kept)}  # before the database, which keeps growing
    there = {name for name in rows.log_names(connection) if of_issuer(name, settings.issuer)}
    return [_judged(connection, store, name, last.get(name)) for name in sorted(kept | there)]


def _judged(connection: Connection, store: HeadStore, name: str, last: KeptHead | None) -> dict[str, Any]:
    head = rows.find_head(connection, name)
    frontier = Frontier() if head is None else head.frontier
    verdict, problem = "consistent with the stored head", ""
    if last is None and frontier.size:
        verdict, problem = "NO HEAD KEPT", f"no signed head of the log '{name}' is stored in {store.folder}"
    try:
        require_growth(connection, store, name, last or NOTHING, frontier)
    except HeadsDisagree as error:
        verdict, problem = "ANOTHER LOG", error.message
    kept = 0 if last is None else last.size
    return {"log": name, "entries": frontier.size, "kept_size": kept, "verdict": verdict, "problem": problem}


def _over_database(settings: RiskGateSettings, work: Callable[[Connection], T]) -> T:
    with open_database(settings) as database:
        return database.read_sync(work)

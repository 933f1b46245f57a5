"""The growth of the database matches docs/riskgate.md, so that operators can plan for it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import sqlalchemy as sa

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "riskgate.md").read_text(encoding="utf-8")
KEPT = ("decisions", "redemptions", "outcomes", "approvals", "approval_votes", "audit_entries", "audit_values")
EFFECTS = ("only asked", "allowed, run and reported", "approved by a person, run and reported")
LIMITS = {
    "max_pending_per_user": 100,
    "max_pending_per_thread": 100,
    "max_asked_per_user_per_hour": 1_000,
    "rejected_stays_seconds": 0,
}
CALLS = 120
AT_ONCE = 8


def said(effect: str) -> float:
    """Return how many bytes the page says one such call takes."""
    (found,) = re.findall(rf"^\| {effect} \|.*\| ([0-9.]+) GB \|$", PAGE, re.MULTILINE)
    return float(found) * 1e9 / 100_000


def stored(gate) -> int:
    """Return the bytes of the database: of the file, or of the tables that only grow."""
    if not gate.database.dialect.is_server:
        pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        return int(gate.database.read_sync(lambda c: c.execute(sa.text(pages)).scalar_one()))
    size = "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(CAST(:names AS text[])) AS name"
    return int(gate.database.read_sync(lambda c: c.execute(sa.text(size), {"names": list(KEPT)}).scalar_one()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "effect", ["only asked", "allowed, run and reported", "approved by a person, run and reported"]
)
async def test_a_hundred_thousand_calls_take_what_the_page_says(make_gate, bundle_with, shared_database, call, effect):
    gate = await make_gate(bundle=bundle_with(**LIMITS), database_url=shared_database)
    ana = gate.person("ana")
    approved = effect.startswith("approved")

    async def one(number: int) -> None:
        path = f'"path":"reports/2026/november/summary-{number:06}.txt"'
        text = ',"content":"' + "The figures of November are complete. " * 3 + '"' if approved else ""
        asked = call("write_file" if approved else "read_file", f"{{{path}{text}}}", f"call-{number:08}")
        run = f"run-{number // 5:08}"
        answer = await (ana.permitted(asked, run=run) if approved else ana.evaluate(asked, run=run))
        if effect != "only asked":
            execution = f"execution-{number:08}"
            await ana.redeem(answer.permit, asked, execution=execution, run=run)
            await ana.report("SUCCEEDED", execution=execution)

    async def several(numbers: range) -> None:
        for begin in range(numbers.start, numbers.stop, AT_ONCE):
            await asyncio.gather(*(one(number) for number in range(begin, min(begin + AT_ONCE, numbers.stop))))

    await several(range(16))  # the first pages of every table
    before = stored(gate)
    await several(range(16, 16 + CALLS))
    assert 0.6 * said(effect) < (stored(gate) - before) / CALLS < 1.25 * said(effect)

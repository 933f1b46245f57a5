"""The documentation: links resolve, tables agree with the code, and diagrams render."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.ports import effects
from phylactery_agent.runtime.runs import status as runs
from phylactery_riskgate.approvals import model as approvals

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for page in [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "tests/README.md",
        *ROOT.glob("examples/**/*.md"),
    ]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
REACH = re.compile(r"\breach\(\s*\"([a-z0-9_.]+)\"\s*\)", re.IGNORECASE)


def anchors(page: Path) -> set[str]:
    """The anchors a forge makes of a page's headings."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: Path):
    broken = []
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
STRANGERS = (("threat-model.md", "A stranger"), ("whatsapp.md", "What a stranger's phone can do"))
KEPT = (("runtime.md", "What the agent keeps"),)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_is_there(page: Path):
    named = NAMED_TEST.findall(page.read_text(encoding="utf-8"))
    missing = [f"{file}::{test}" for file, test in named if not _defines(ROOT / file, test)]
    assert missing == []


def _defines(file: Path, test: str) -> bool:
    """Return True if a file has a test of this name, which pytest then collects."""
    return file.exists() and re.search(rf"^(?:async )?def {test}\(", file.read_text("utf-8"), re.MULTILINE) is not None


@pytest.mark.parametrize(("page", "heading"), [*STRANGERS, *KEPT])
def test_every_row_about_strangers_and_about_what_is_kept_names_its_test(page: str, heading: str):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    section = re.split(r"^#+ ", text.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]
    rows = [
        line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| a stranger tries")
    ]
    rows = [line for line in rows if not line.startswith(("| they write |", "| what, and where |"))]
    assert len(rows) > 8
    assert [row for row in rows if NAMED_TEST.search(row.rsplit("|", 2)[1]) is None] == []


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    unlisted = {page for page in pages if f"({page}" not in index and not page.startswith("adr/")} - {"README.md"}
    assert unlisted == set()
    decisions = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    records = {page.name for page in (ROOT / "docs" / "adr").glob("[0-9]*.md")}
    assert {name for name in records if f"({name})" not in decisions} == set()


def test_every_record_of_a_decision_has_status_date_and_options():
    bare = re.compile(r"^# \d+\. .+\n\n- Status: \w.*\n- Date: \d{4}-\d\d-\d\d\n- Options considered: .+", re.MULTILINE)
    records = (ROOT / "docs" / "adr").glob("[0-9]*.md")
    assert [page.name for page in records if not bare.match(page.read_text(encoding="utf-8"))] == []


def test_the_page_of_effects_lists_exactly_the_crash_points_of_the_code():
    sources = [path for path in (ROOT / "services").rglob("*.py") if "crashpoints.py" not in path.name]
    reached = {name for path in sources for name in REACH.findall(path.read_text(encoding="utf-8"))}
    section = (ROOT / "docs" / "effects.md").read_text(encoding="utf-8").split("## Crash points")[1]
    assert set(re.findall(r"^\| ([a-z]+\.[a-z0-9_.]+) \|", section, re.MULTILINE)) == reached


def section_of_effects(heading: str) -> str:
    page = (ROOT / "docs" / "effects.md").read_text(encoding="utf-8")
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def transitions(heading: str) -> set[tuple[str, ...]]:
    """The rows of the first table of a section, without its last column where that says when; lists taken apart."""
    table = re.search(r"^\| from .*\n\|[-|]+\n((?:\|.*\n)+)", section_of_effects(heading) + "\n", re.MULTILINE)
    assert table is not None
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()]
    cells = [[cell.split(", ") for cell in (row[:-1] if len(row) > 2 else row)] for row in rows]
    return {one for row in cells for one in product(*row)}


def drawn(heading: str) -> set[tuple[str, str]]:
    """The arrows of a section's drawing between two states."""
    return set(re.findall(r"^ *(\w+) --> (\w+)", section_of_effects(heading), re.MULTILINE))


def allowed(
    advance: Callable[[Any, Any], str], states: Iterable[Any], steps: type[StrEnum]
) -> set[tuple[str, str, str]]:
    """Every step the code allows: from, event, to."""
    found = set()
    for state, step in product(states, steps):
        with contextlib.suppress(RuntimeError):
            found.add((str(state or "–"), str(step), str(advance(state, step))))
    return found


def test_the_page_of_effects_has_the_table_of_the_ledger():
    of_code = allowed(effects.advance, (None, *effects.EffectState), effects.EffectEvent)
    assert transitions("A row of the ledger") == of_code
    assert drawn("A row of the ledger") == {(one, to) for one, _, to in of_code if one not in {to, "–"}}


def test_the_page_of_effects_has_the_table_of_a_run():
    of_code = {(one, to) for one, _, to in allowed(runs.advance, runs.RunStatus, runs.RunStatus)}
    assert transitions("A run") == of_code | {("–", runs.OPENED)}
    assert drawn("A run") == of_code


def test_the_page_of_effects_has_the_table_of_an_approval():
    of_code = allowed(approvals.advance, approvals.ApprovalState, approvals.ApprovalEvent)
    assert transitions("An approval") == {(one, to) for one, _, to in of_code}


def test_every_reference_to_a_page_in_code_names_a_page_that_is_there():
    named = re.compile(r"\b(docs/[\w./-]+\.md)")
    sources = [
        *ROOT.glob("services/**/*.py"),
        *ROOT.glob("clients/**/*.py"),
        *ROOT.glob("protos/phylactery/**/*.proto"),
    ]
    wrong = {
        (str(path.relative_to(ROOT)), page)
        for path in sources
        for page in named.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / page).exists() and "specs" not in path.parts  # where such names are examples of files
    }
    assert wrong == set()


def test_no_code_refers_to_a_document_outside_the_repository():
    outside = re.compile(r"\bdesign/\w+\.md|\bseeds? 0\d\d\b")
    sources = [path for path in ROOT.glob("services/**/*.py") if outside.search(path.read_text(encoding="utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in sources] == []

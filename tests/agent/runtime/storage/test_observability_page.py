"""docs/observability.md lists exactly the spans and metrics in the code, with kind and unit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_chassis.telemetry import semconv

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
KINDS = {
    "create_counter": "counter",
    "create_histogram": "histogram",
    "create_observable_gauge": "gauge",
    "create_gauge": "gauge",
}
NAMED_ELSEWHERE = {"title": {"plan", "node {}"}, "method": {"{}"}, "name": {"{}"}}
"""Names that a call of span() takes from a variable: those of calls are methods."""
WORDS = {semconv.INVOKE_AGENT, semconv.PLAN, semconv.EXECUTE_TOOL, semconv.CHAT}


def table(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def calls() -> Iterator[ast.Call]:
    for path in sorted((ROOT / "services").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield node


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def text_of(node: ast.expr) -> str:
    """A text as the code has it; what is only known when it runs is {}."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "semconv":
        return str(getattr(semconv, node.attr))
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return text_of(node.value)
    return "{}"


def metric_of(node: ast.Call) -> tuple[str, str, str] | None:
    kind = KINDS.get(called(node))
    if kind is None or not node.args or (name := text_of(node.args[0])) == "{}":
        return None
    units = [keyword.value for keyword in node.keywords if keyword.arg == "unit"]
    unit = node.args[1] if called(node) == "create_gauge" else (units or [ast.Constant("")])[0]
    return name, kind, text_of(unit)


def spans_of(node: ast.Call) -> set[str]:
    whole = called(node) == "span" and len(node.args) == 1 and any(one.arg == "attributes" for one in node.keywords)
    begun = called(node) == "span" and isinstance(node.func, ast.Attribute)
    if not whole and not (begun and getattr(node.func, "value", None) and _is_telemetry(node.func)):
        return set()
    first = node.args[0]
    return NAMED_ELSEWHERE[first.id] if isinstance(first, ast.Name) else {text_of(first)}


def _is_telemetry(function: Any) -> bool:
    return getattr(function.value, "id", "") == "telemetry"


@pytest.mark.slow
def test_every_metric_of_the_code_is_on_the_page_with_its_kind_and_unit_and_no_other() -> None:
    there = {found for node in calls() if (found := metric_of(node)) is not None}
    told = {(quoted(row[0])[0], row[1], "".join(quoted(row[2]))) for row in table("Metrics")}
    assert told == there
    assert len(there) > 20


@pytest.mark.slow
def test_every_span_of_the_code_is_on_the_page_and_no_other() -> None:
    there = {name for node in calls() for name in spans_of(node)}
    told = {re.sub(r"{[^}]*}", "{}", quoted(row[0])[0]) for row in table("Spans")}
    assert told == there
    assert len(there) == 11


def test_every_attribute_on_the_page_is_one_of_the_code_and_every_one_of_the_code_is_there() -> None:
    known = {value for name, value in vars(semconv).items() if name.isupper() and isinstance(value, str)}
    metrics = {quoted(row[0])[0] for row in table("Metrics")}
    told = {
        name
        for row in [*([row[2] for row in table("Spans")]), *([row[3] for row in table("Metrics")])]
        for name in quoted(row)
    }
    assert told <= known
    assert known - metrics - WORDS - {semconv.OTHER} == told

"""Amounts in hundredths: what the words say of them, what limits count, and what is no amount at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import BundleError
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CLEAR, NAMED, TaskFacts
from phylactery_riskgate.domain.intent.words import read_words
from phylactery_riskgate.domain.model import BoundCall, Counters, Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.usage import UsageReader, charge_of

from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, bundle_of, decide, tool

CENTS = {"pointer": "/amount_cents", "unit": "cents", "currency": "EUR"}
PROPERTIES = {"to": {"type": "string"}, "amount_cents": {"type": ["number", "null"]}}
ASKS = {"phrases": {"en": ["pay *"], "es": ["paga *"]}, "examples": {"en": ["Pay Ana"], "es": ["Paga a Ana"]}}
DAILY = {"name": "daily", "tools": ["pay"], "per": ["user"], "window_seconds": 60, "limits": {"amount": 100}}
TO = "ana@acme.es"


def pay(amount: Any, properties: Any = PROPERTIES, **more: Any) -> dict[str, Any]:
    roles = {"/to": "principal", "/amount_cents": "amount"}
    return tool("pay", properties, amount=amount, roles=roles, controls=[*roles], asks=ASKS, recipients=["/to"], **more)


def engine_of(folder: Path, amount: Any, *budgets: Any, **more: Any) -> DecisionEngine:
    settings = {**SETTINGS, "budgets": list(budgets)}
    return DecisionEngine(bundle_of(folder, [pay(amount, **more)], ALLOW_ALL, settings=settings))


def told(amount: int = 0) -> UsageReader:
    return lambda tool, _charge: {budget.name: Counters(0, amount, 0, 0) for budget in tool.budgets}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> DecisionEngine:
    return engine_of(tmp_path_factory.mktemp("cents"), CENTS, DAILY)


def facts(engine: DecisionEngine, words: str, cents: Any) -> TaskFacts:
    piece = read_words(words, own=((0, len(words)),), starts=())
    call = BoundCall("pay", "", {"to": TO, "amount_cents": cents}, "", "")
    return task_facts(TaskIndex([piece]), engine.bundle.tools["pay"], call)


@pytest.mark.parametrize(
    ("words", "cents"),
    [
        (f"Pay 20 euros to {TO}", 2000),
        (f"Pay 20 to {TO}", 2000),
        (f"Pay €20 to {TO}", 2000),
        (f"Pay twenty euros to {TO}", 2000),
        (f"Pay 19.99 euros to {TO}", 1999),
        (f"Paga 19,99 € a {TO}", 1999),
        (f"Paga veinte euros a {TO}", 2000),
        (f"Pay 0.05 EUR to {TO}", 5),
        (f"Pay 1,250 euros to {TO}", 125_000),
    ],
)
def test_what_the_words_say_in_euros_is_what_the_call_has_in_cents(
    engine: DecisionEngine, words: str, cents: int
) -> None:
    known = facts(engine, words, cents)
    assert (known.intent, known.worst, known.missing) == (CLEAR, NAMED, ("", ""))


@pytest.mark.parametrize("cents", [20, 2001, 1999, 200, 20_000, 200_000, 2_000_000, -2000, 0, 2000.5, 10**15])
def test_any_other_amount_is_not_what_was_said(engine: DecisionEngine, cents: float) -> None:
    assert facts(engine, f"Pay 20 euros to {TO}", cents).intent < CLEAR
    assert facts(engine, f"Paga 20 euros a {TO}", cents).intent < CLEAR


@pytest.mark.parametrize("words", ["2000", "2000 cents", "2000 euros", "20000 euros", "2.000 euros", "2 euros"])
def test_a_figure_that_only_looks_like_the_calls_is_another_amount(engine: DecisionEngine, words: str) -> None:
    assert facts(engine, f"Pay {words} to {TO}", 2000).intent < CLEAR


@pytest.mark.parametrize(
    "said",
    ["20 dollars", "$20", "US$20", "20 USD", "£20", "20 pounds", "¥20", "20 yen", "20 CHF", "20 pesos", "20 bitcoin"],
)
def test_another_currency_than_the_tools_is_asked_about(engine: DecisionEngine, said: str) -> None:
    assert facts(engine, f"Pay {said} to {TO}", 2000).intent < CLEAR
    assert facts(engine, f"Pay 20 to {TO}, in {said.strip('20 ')}", 2000).intent < CLEAR


def test_an_amount_within_an_argument_is_read_alike(tmp_path: Path) -> None:
    inner = {"type": "object", "properties": {"minor": {"type": "integer"}}, "required": ["minor"]}
    entry = tool(
        "pay",
        {"to": {"type": "string"}, "sum": inner},
        amount={"pointer": "/sum/minor", "unit": "cents"},
        roles={"/to": "principal", "/sum/minor": "amount"},
        controls=["/to", "/sum/minor"],
        asks=ASKS,
    )
    known = DecisionEngine(bundle_of(tmp_path, [entry], ALLOW_ALL)).bundle.tools["pay"]
    call = BoundCall("pay", "", {"to": TO, "sum": {"minor": 2000}}, "", "")
    words = f"Pay 20 euros to {TO}"
    read = lambda words: task_facts(TaskIndex([read_words(words, own=((0, len(words)),), starts=())]), known, call)  # noqa: E731
    assert [read(words).worst, read(words.replace("20", "2000")).worst] == [NAMED, 3]
    assert call.arguments == {"to": TO, "sum": {"minor": 2000}}


# ---- limits ---------------------------------------------------------------------------------------------------------


def test_a_limit_counts_whole_units_in_the_currency_of_the_tool(engine: DecisionEngine) -> None:
    known = engine.bundle.tools["pay"]
    charge = charge_of(known, BoundCall("pay", "", {"to": TO, "amount_cents": 2050}, "", ""))
    assert (charge.amount, charge.currency, charge.recipients) == (205_000, "EUR", (TO,))
    expected = {10_000: Decision.ALLOW, 10_001: Decision.BLOCKED, 1: Decision.ALLOW, 0: Decision.ALLOW}
    for cents, decision in expected.items():
        assert decide(engine, "pay", {"to": TO, "amount_cents": cents}, usage=told()).decision is decision
    assert decide(engine, "pay", {"to": TO, "amount_cents": 1}, usage=told(1_000_000)).decision is Decision.BLOCKED


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            '{"to": "b", "amount_cents": -1}',
            '{"to": "b", "amount_cents": 0.5}',
            '{"to": "b", "amount_cents": 2000.01}',
        ),
        *('{"to": "b", "amount_cents": 1e-7}', '{"to": "b", "amount_cents": 92233720368547760}', '{"to": "b"}'),
        '{"to": "b", "amount_cents": null}',
    ],
)
def test_what_is_no_amount_in_cents_is_blocked_by_a_budget(engine: DecisionEngine, arguments: str) -> None:
    verdict = decide(engine, "pay", arguments, usage=told())
    assert verdict.decision is Decision.BLOCKED
    assert verdict.reasons[0].code in {"AMOUNT_NOT_COUNTABLE", "NUMBER_OUT_OF_RANGE"}


@pytest.mark.parametrize("value", ["-1", "0.5", "1999.999", "-0.01", "1e-7"])
def test_what_is_no_amount_in_cents_is_blocked_without_a_budget_too(tmp_path: Path, value: str) -> None:
    engine = engine_of(tmp_path, CENTS)
    verdict = decide(engine, "pay", f'{{"to": "b", "amount_cents": {value}}}')
    assert (verdict.decision, verdict.reasons[0].code) == (Decision.BLOCKED, "AMOUNT_NOT_COUNTABLE")
    for good in ("2000", "2e3", "2000.0", "0"):
        assert decide(engine, "pay", f'{{"to": "b", "amount_cents": {good}}}').decision is Decision.ALLOW


@pytest.mark.parametrize("value", ['"2000"', "true", "[2000]", '{"n": 2000}', "NaN", "1e999", "Infinity"])
def test_what_is_no_number_fits_no_schema(engine: DecisionEngine, value: str) -> None:
    verdict = decide(engine, "pay", f'{{"to": "b", "amount_cents": {value}}}', usage=told())
    assert verdict.decision is Decision.BLOCKED


@pytest.mark.parametrize("cents", [0, 1, 2000])
def test_an_unknown_unit_is_over_every_limit_and_counted_by_what_limits_no_amount(tmp_path: Path, cents: int) -> None:
    unknown = {"pointer": "/amount_cents", "unit": "unknown"}
    call = {"to": TO, "amount_cents": cents}
    limited = decide(engine_of(tmp_path / "limited", unknown, DAILY), "pay", call, usage=told())
    assert (limited.decision, limited.reasons[0].code) == (Decision.BLOCKED, "AMOUNT_NOT_COUNTABLE")
    counted = engine_of(tmp_path / "counted", unknown, DAILY | {"limits": {"calls": 3}})
    assert decide(counted, "pay", call, usage=told()).decision is Decision.ALLOW


# ---- the entry ------------------------------------------------------------------------------------------------------


def test_a_pointer_alone_is_what_it_was_and_a_unit_is_part_of_the_version(tmp_path: Path) -> None:
    made = ("/amount_cents", {"pointer": "/amount_cents"}, {"pointer": "/amount_cents", "unit": "cents"}, CENTS)
    tools = [engine_of(tmp_path / str(at), one).bundle.tools["pay"] for at, one in enumerate(made)]
    versions = [one.version for one in tools]
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3
    assert [one.amount for one in tools] == ["/amount_cents"] * 4


@pytest.mark.parametrize(
    ("amount", "more", "said"),
    [
        ({"pointer": "/amount_cents", "unit": "mills"}, {}, "unit"),
        ({"pointer": "/to", "unit": "cents"}, {}, "is not a number"),
        ({"pointer": "/nothing", "unit": "cents"}, {}, "leads to no property"),
        ({"unit": "cents"}, {}, "pointer"),
        ({"pointer": "/amount_cents", "currency": "euros"}, {}, "currency"),
        ({"pointer": "/amount_cents", "factor": 100}, {}, "factor"),
        (5, {}, "amount"),
        (CENTS, {"currency": "/currency"}, "says the currency already"),
    ],
)
def test_an_entry_that_cannot_be_counted_is_refused_with_its_place(
    tmp_path: Path, amount: Any, more: dict[str, Any], said: str
) -> None:
    properties = {**PROPERTIES, "currency": {"type": "string", "enum": ["EUR", "USD"]}}
    with pytest.raises(BundleError, match=said):
        engine_of(tmp_path, amount, properties=properties, **more)

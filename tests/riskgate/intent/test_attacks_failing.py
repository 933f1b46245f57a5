"""Text of others cannot suppress a decision, neither by being uncomputable nor by its size."""

from __future__ import annotations

import pytest
from phylactery_riskgate.domain.intent import facts as facts_module
from phylactery_riskgate.domain.intent.facts import MAX_DISTINCT
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.intent.origin.origins import Argument, Found
from phylactery_riskgate.domain.intent.reading import read_words
from phylactery_riskgate.domain.model import BoundCall, Caller, CallSite, CatalogTool, Decision, RawCall
from phylactery_riskgate.domain.policy.evidence import UNREADABLE

from tests.riskgate.intent.test_facts import DELETE, FILES, INBOX, LISTING, SEND, facts, origin, result
from tests.support.riskgate.bundle_cache import default_engine


@pytest.mark.parametrize("size", ["NaN", "sNaN", "Infinity", "-Infinity", "1e999999999"])
def test_a_number_without_an_order_picks_nothing(size: str) -> None:
    items = [*LISTING, {"id": "f9", "name": "odd.txt", "size": size, "date": size}]
    assert origin("Delete the largest file", DELETE, {"id": "f9"}, result(FILES, items)) in range(4)
    assert origin("Delete the file notes.txt", DELETE, {"id": "f3"}, result(FILES, items)) == 0


def test_facts_that_cannot_be_worked_out_count_as_the_worst() -> None:
    def fails(_tool: CatalogTool, _bound: BoundCall) -> TaskFacts:
        raise ArithmeticError

    engine = default_engine()
    call = RawCall("write_file", "c", '{"path": "notes.txt", "content": "hello"}')
    verdict = engine.decide(call, Caller("ana", "acme"), CallSite("thread", "run"), task=fails)
    assert verdict.decision is Decision.BLOCKED
    assert verdict.task == UNREADABLE
    assert (UNREADABLE.shown, UNREADABLE.worst) == (True, 3)


@pytest.mark.parametrize("same", [True, False])
def test_a_call_costs_no_more_origins_than_are_looked_at(monkeypatch: pytest.MonkeyPatch, same: bool) -> None:
    looked: list[Argument] = []
    one_origin = facts_module.origin

    def counted(index: TaskIndex, argument: Argument) -> Found:
        looked.append(argument)
        return one_origin(index, argument)

    monkeypatch.setattr(facts_module, "origin", counted)
    mails = [{"id": n, "from": "x@y.example", "subject": "s", "body": "hello there"} for n in range(400)]
    many = ["hello" if same else f"hello{number}" for number in range(400)]
    found = facts("Send an email to ana@acme.es", SEND, {"to": many, "body": many}, result(INBOX, mails))
    assert found.worst == 3
    assert len(looked) == (2 if same else MAX_DISTINCT)


def test_controls_are_looked_at_before_contents() -> None:
    lines = [f"line {number}" for number in range(3 * MAX_DISTINCT)]
    words = "Send an email to ana@acme.es"
    assert facts(words, SEND, {"body": lines, "to": ["ana@acme.es"]}).worst == 0
    assert facts(words, SEND, {"to": ["ana@acme.es", *lines]}).worst == 3


def test_one_value_of_a_thousand_items_is_looked_at_once() -> None:
    mails = [{"id": n, "from": "x@y.example", "subject": "Hello you", "body": "hello there"} for n in range(500)]
    index = TaskIndex([read_words("Send an email"), result(INBOX, mails)])
    assert len(index.results[0].by_norm["x@y.example"]) == 1
    assert len(index.results[0].by_norm) < len(mails) + 10

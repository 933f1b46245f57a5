"""What somebody else wrote takes no decision away: facts that cannot be worked out are the worst there are."""

from __future__ import annotations

import pytest
from phylactery_riskgate.domain.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.engine import DecisionEngine
from phylactery_riskgate.domain.evidence import UNREADABLE
from phylactery_riskgate.domain.model import BoundCall, Caller, CallSite, CatalogTool, Decision, RawCall
from phylactery_riskgate.domain.tasks.model import TaskFacts

from tests.riskgate.test_riskgate_tasks_domain_facts import DELETE, FILES, LISTING, origin, result


@pytest.mark.parametrize("size", ["NaN", "sNaN", "Infinity", "-Infinity", "1e999999999"])
def test_a_number_without_an_order_picks_nothing(size: str) -> None:
    items = [*LISTING, {"id": "f9", "name": "odd.txt", "size": size, "date": size}]
    assert origin("Delete the largest file", DELETE, {"id": "f9"}, result(FILES, items)) in range(4)
    assert origin("Delete the file notes.txt", DELETE, {"id": "f3"}, result(FILES, items)) == 0


def test_facts_that_cannot_be_worked_out_count_as_the_worst() -> None:
    def fails(_tool: CatalogTool, _bound: BoundCall) -> TaskFacts:
        raise ArithmeticError

    engine = DecisionEngine(load_bundle(default_bundle_folder()))
    call = RawCall("write_file", "c", '{"path": "notes.txt", "content": "hello"}')
    verdict = engine.decide(call, Caller("ana", "acme"), CallSite("thread", "run"), task=fails)
    assert verdict.decision is Decision.BLOCKED
    assert verdict.task == UNREADABLE
    assert (UNREADABLE.shown, UNREADABLE.worst) == (True, 3)

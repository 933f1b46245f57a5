"""The table of a run's transitions, and everything that has to agree with it."""

from __future__ import annotations

import ast
from itertools import product
from pathlib import Path
from typing import get_args, get_type_hints

import phylactery_agent
import pytest
import sqlalchemy as sa
from phylactery.agent.v1 import event_pb2
from phylactery_agent.api.runs import RunsRequest
from phylactery_agent.graph.core.state import RunStatus as GraphStatus
from phylactery_agent.runtime.runs.status import (
    ACTIVE,
    OPENED,
    SERVED,
    RunStatus,
    RunTransitionError,
    advance,
    before,
)

from tests.support.agent.stores import Stores

ALLOWED = {
    ("queued", "running"),
    ("queued", "cancelled"),
    ("running", "running"),
    ("running", "suspended"),
    ("running", "done"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("running", "dead"),
    ("suspended", "running"),
    ("suspended", "cancelled"),
}
CODE = Path(phylactery_agent.__file__).parent
ONLY_STATES = {"queued", "suspended", "dead", "proposed", "denied", "started", "in_doubt"}
"""Words of the two enums that mean nothing else in the runtime."""


@pytest.mark.parametrize(("status", "to"), list(product(RunStatus, RunStatus)), ids=str)
def test_a_run_comes_to_what_the_table_allows_and_to_nothing_else(status: RunStatus, to: RunStatus) -> None:
    if (status, to) in ALLOWED:
        assert advance(status, to) is to
        assert status in before(to)
    else:
        with pytest.raises(RunTransitionError, match=f"a run that is {status} cannot become {to}"):
            advance(status, to)
        assert status not in before(to)


def test_a_run_is_active_as_long_as_it_can_become_something() -> None:
    assert {status for status, _ in ALLOWED} == set(ACTIVE)
    assert set(SERVED) < set(ACTIVE)
    assert OPENED in SERVED
    assert before(OPENED) == ()


def test_the_contract_has_every_status_by_its_name() -> None:
    named = {name.removeprefix("RUN_STATUS_").lower() for name in event_pb2.RunStatus.keys()}  # noqa: SIM118 - no dict
    assert named == {*RunStatus, "unspecified"}


def test_a_list_can_be_asked_for_every_status() -> None:
    assert set(get_args(get_type_hints(RunsRequest)["status"])) == {*RunStatus, ""}


def test_the_graph_leaves_a_run_in_a_status_it_can_come_to() -> None:
    assert all(RunStatus.RUNNING in before(RunStatus(status)) for status in get_args(GraphStatus))


def test_the_indexes_of_the_database_name_the_statuses_of_the_table(stores: Stores) -> None:
    query = (
        "SELECT indexname, indexdef FROM pg_indexes"
        if stores.database.dialect.is_server
        else "SELECT name, sql FROM sqlite_master WHERE type = 'index'"
    )
    made = dict(stores.database.read_sync(lambda c: [tuple(row) for row in c.execute(sa.text(query))]))
    for index, statuses in (("agent_runs_active", ACTIVE), ("agent_runs_one_served", SERVED)):
        where = made[index].split("WHERE")[1]
        assert {status for status in RunStatus if f"'{status}'" in where} == set(statuses)
    assert "'in_doubt'" in made["agent_tool_calls_in_doubt"].split("WHERE")[1]


def test_no_module_of_the_runtime_spells_a_status_out() -> None:
    tables = {CODE / "runtime/runs/status.py", CODE / "ports/effects.py"}
    modules = {*CODE.glob("runtime/**/*.py"), *CODE.glob("ports/*.py"), CODE / "api/mapping.py"} - tables
    spelled = [
        (module.name, node.lineno, node.value)
        for module in sorted(modules)
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in ONLY_STATES
    ]
    assert spelled == []

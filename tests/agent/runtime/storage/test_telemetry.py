"""The agent's spans and metrics reach a real OTLP collector, with the documented names and without secrets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.tools.named_folders import make_person_folder
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_chassis.telemetry import semconv

from tests.support.agent.process import AgentProcess
from tests.support.agent.system import DONE, SUSPENDED, open_system
from tests.support.servers.collector import Collector, collecting

pytestmark = pytest.mark.slow

SUBJECT, SECRET, THREAD = "marifloria", "zarzuelesca", "hilo-de-marifloria"
KINDS = {"sum": "counter", "histogram": "histogram", "gauge": "gauge"}


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - the collector has threads of its own
            await asyncio.sleep(0.05)


def words(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


def about(**named: str) -> frozenset[tuple[str, str]]:
    names = {
        "agent": semconv.GEN_AI_AGENT,
        "status": semconv.RUN_STATUS,
        "reason": semconv.FINISH_REASON,
        "tool": semconv.GEN_AI_TOOL,
        "state": semconv.TOOL_CALL_STATE,
        "pathway": semconv.PATHWAY,
        "kind": semconv.OUTBOX_KIND,
    }
    return frozenset((names[name], value) for name, value in named.items())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Collector:
    """What a real agent process told a collector of three turns: small talk, a read, and a write that waits."""
    with collecting() as collector:
        asyncio.run(_turns(tmp_path_factory.mktemp("told"), collector))
        return collector


async def _turns(folder: Path, collector: Collector) -> None:
    async with open_system(folder, asks=True) as system:
        sandbox = make_person_folder(folder / "process" / "sandbox", "acme", SUBJECT)
        sandbox.joinpath("notas.txt").write_text(f"contenido {SECRET}")
        process = AgentProcess(
            system,
            folder / "process",
            AGENT_OTLP_ENDPOINT=collector.endpoint,
            OTEL_METRIC_EXPORT_INTERVAL="200",
            OTEL_BSP_SCHEDULE_DELAY="200",
        )
        async with await process.channel() as channel:
            person = system.through(channel, system.person(SUBJECT))
            assert (await person.say("hola", THREAD)).run.status == DONE
            assert (await person.say("lee notas.txt", THREAD)).run.status == DONE
            assert (await person.say(f'escribe "{SECRET}" en notas.txt', THREAD)).run.status == SUSPENDED
            # whatever goes on to be delivered ends, and then a whole export must tell that
            await until(lambda: collector.points(semconv.AGENT_APPROVALS_WAITING) == {frozenset(): 1})
            await until(lambda: set(collector.points(semconv.AGENT_OUTBOX_DEPTH).values()) == {0})
        process.end()


def counted(told: Collector, name: str) -> dict[Any, Any]:
    """The points of a counter that are not 0, as every known one is from the start."""
    return {about: count for about, count in told.points(name).items() if count}


def test_turns_and_runs_are_counted_by_how_they_ended(told: Collector) -> None:
    done = about(agent="secured", status="done", reason="ANSWERED")
    waits = about(agent="secured", status="suspended", reason="AWAITING_APPROVAL")
    assert counted(told, semconv.AGENT_TURNS) == {done: 2, waits: 1}
    [(ended, (count, seconds))] = told.points(semconv.AGENT_RUN_DURATION).items()
    assert (ended, count) == (about(agent="secured", status="done"), 2)
    assert 0 < seconds < 120
    assert told.points(semconv.SLA_ERROR_RATE) == {frozenset(): 0}


def test_what_did_not_happen_is_told_as_zero(told: Collector) -> None:
    assert told.points(semconv.SLA_VIOLATIONS).keys() == {about(pathway="text_fast_path")}
    assert told.points(semconv.AGENT_TOOL_CALLS)[about(tool="write_file", state="in_doubt")] == 0
    assert told.points(semconv.AGENT_TURNS)[about(agent="secured", status="failed", reason="INTERNAL_ERROR")] == 0


def test_tool_calls_are_counted_by_tool_and_state(told: Collector) -> None:
    assert counted(told, semconv.AGENT_TOOL_CALLS) == {
        **{about(tool="read_file", state=state): 1 for state in ("proposed", "started", "finished")},
        about(tool="write_file", state="proposed"): 1,
    }


def test_what_waits_is_told_as_the_database_has_it(told: Collector) -> None:
    assert told.points(semconv.AGENT_QUEUE_DEPTH) == {frozenset(): 0}
    assert told.points(semconv.AGENT_APPROVALS_WAITING) == {frozenset(): 1}
    assert told.points(semconv.AGENT_EFFECTS_IN_DOUBT) == {frozenset(): 0}
    assert {about(kind=kind) for kind in ("transcript", "outcome")} < told.points(semconv.AGENT_OUTBOX_DEPTH).keys()


def test_each_turn_tells_its_times_by_pathway(told: Collector) -> None:
    for name in (semconv.SLA_ROUTE_DECISION_MS, semconv.SLA_TYPING_START_MS):
        counts = {dict(key)[semconv.PATHWAY]: count for key, (count, _) in told.points(name).items()}
        assert counts == {"text_fast_path": 1, "tool_intent": 2}, name
    whole = told.points(semconv.SLA_END_TO_END_MS)
    assert {key: count for key, (count, _) in whole.items()} == {
        about(pathway="text_fast_path", status="done"): 1,
        about(pathway="tool_intent", status="done"): 1,
        about(pathway="tool_intent", status="suspended"): 1,
    }
    routed = sum(taken for _, taken in told.points(semconv.SLA_ROUTE_DECISION_MS).values())
    assert 0 < routed <= sum(taken for _, taken in whole.values())


def test_the_spans_of_a_turn_lie_under_its_call_with_genai_names(told: Collector) -> None:
    by_id = {span.span_id: span for span in told.spans}
    [executed] = [span for span in told.spans if span.name == "execute_tool read_file"]
    turns = [span for span in told.spans if span.name == "invoke_agent secured"]
    [turn] = [span for span in turns if span.trace_id == executed.trace_id]
    planned = next(span for span in told.spans if span.name == "plan" and span.trace_id == turn.trace_id)
    assert by_id[turn.parent_span_id].name == "phylactery.agent.v1.ChatService/SendMessage"
    assert planned.parent_span_id == turn.span_id
    above = executed
    with contextlib.suppress(KeyError):
        while above.span_id != turn.span_id:
            above = by_id[above.parent_span_id]
    assert above is turn
    run = words(turn)[semconv.RUN_ID]
    assert words(turn) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "secured",
        "gen_ai.conversation.id": words(turn)["gen_ai.conversation.id"],
        "phylactery.run.id": run,
        "phylactery.finish_reason": "ANSWERED",
    }
    assert words(planned) == {
        "gen_ai.operation.name": "plan",
        "phylactery.node": "Planner",
        "phylactery.run.id": run,
    }
    ran = words(executed)
    assert ran.pop("gen_ai.tool.call.id")
    assert ran == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read_file",
        "gen_ai.tool.type": "function",
        "phylactery.run.id": run,
    }


def test_nothing_a_person_said_and_no_name_of_theirs_is_told(told: Collector) -> None:
    assert len(told.raw) > 10_000
    for secret in (SUBJECT, SECRET, THREAD, "notas.txt", "hola"):
        assert secret.encode() not in told.raw, secret


def test_a_name_nobody_registered_is_no_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(metrics._tool_calls, "add", lambda *given: seen.append(given), raising=False)
    metrics.tool_call("marifloria@example.com", "proposed", ToolRegistry())
    assert seen == [(1, {semconv.GEN_AI_TOOL: "_OTHER", semconv.TOOL_CALL_STATE: "proposed"})]

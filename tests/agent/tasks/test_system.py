"""A task's data as the agent sends it to a real RiskGate, in order."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from phylactery_agent.adapters.riskgate import RiskGateAdapter
from phylactery_agent.ports import CallContext, ExecutionReport, GateRefusedError, GateUnavailableError, ProposedCall
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.turn.tasks import Result, observation
from phylactery_agent.tools.specs import FILE_INFO

from tests.support.agent.system import DONE, FAILED, SUSPENDED, Person, System, approval_of, open_system

_TRIES = 3_000


class Wire:
    """Notes every call of the agent to RiskGate that has to do with a task; each may be cut off."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.shown: list[dict[str, Any]] = []
        self.asked_in: list[tuple[str, str]] = []
        self.begun: dict[str, tuple[str, str]] = {}
        self.down: set[str] = set()

    def enter(self, method: str, what: str) -> None:
        if method in self.down:
            raise GateUnavailableError(f"{method} is cut off")
        self.calls.append((method, what))

    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]


class WatchedGate:
    """The agent's own adapter, watched."""

    def __init__(self, gate: RiskGateAdapter, wire: Wire) -> None:
        self._gate, self._wire = gate, wire

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate, name)

    async def begin_task(self, request_id: str, *, words: str, continues: str, **where: Any) -> str:
        self._wire.enter("begin_task", request_id)
        task_id = await self._gate.begin_task(request_id, words=words, continues=continues, **where)
        self._wire.begun[task_id] = (words, continues)
        return task_id

    async def observe(self, shown: Mapping[str, Any]) -> None:
        self._wire.enter("observe", shown["tool"])
        await self._gate.observe(shown)
        self._wire.shown.append(dict(shown))

    async def end_task(self, task_id: str, *, keep_seconds: int = 0) -> None:
        self._wire.enter("end_task", task_id)
        await self._gate.end_task(task_id, keep_seconds=keep_seconds)

    async def report_outcome(self, report: ExecutionReport) -> None:
        self._wire.enter("report_outcome", report.outcome)
        await self._gate.report_outcome(report)

    async def evaluate(self, call: Any, where: CallContext, *, task_id: str = "") -> Any:
        self._wire.enter("evaluate", call.tool)
        self._wire.asked_in.append((call.tool, task_id))
        return await self._gate.evaluate(call, where, task_id=task_id)


@pytest.fixture
def wire(system: System, monkeypatch: pytest.MonkeyPatch) -> Wire:
    made, real = Wire(), system.agent.services.gate
    monkeypatch.setattr(system.agent.services, "gate", lambda *whose: WatchedGate(real(*whose), made))
    return made


async def told_all(system: System) -> None:
    """Wait until nothing of what is told other services waits any more."""
    await system.agent.runner.idle()
    for _ in range(_TRIES):
        if await system.agent.delivery.flush_all():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("something still waits to be told")


def tasks(system: System) -> list[tuple[str, int, bool]]:
    """Return request_id, results and whether it was ended, of every task RiskGate knows."""
    with closing(sqlite3.connect(system.folder / "riskgate" / "riskgate.db")) as database:
        rows = database.execute("SELECT request_id, pieces, end_us FROM tasks ORDER BY create_us, id").fetchall()
    return [(request_id, pieces - 1, bool(end_us)) for request_id, pieces, end_us in rows]


async def test_each_result_goes_over_the_wire_before_the_next_question_and_the_end_comes_last(
    system: System, ana: Person, wire: Wire
) -> None:
    system.sandbox.joinpath("a.txt").write_text("text of a")
    system.sandbox.joinpath("b.txt").write_text("text of b")
    answer = await ana.say("lee a.txt y luego lee b.txt")
    assert answer.run.status == DONE
    await told_all(system)
    [(task_id, begun)] = wire.begun.items()
    assert begun == ("lee a.txt y luego lee b.txt", "")
    assert wire.calls[0] == ("begin_task", answer.run.id)
    assert wire.methods()[1:5] == ["evaluate", "report_outcome", "observe", "evaluate"]
    assert sorted(wire.methods()[5:-1]) == ["observe", "report_outcome"]
    assert wire.calls[-1] == ("end_task", task_id)
    assert [(shown["result_text"], shown["arguments_json"]) for shown in wire.shown] == [
        ("text of a", '{"path":"a.txt"}'),
        ("text of b", '{"path":"b.txt"}'),
    ]
    assert wire.asked_in == [("read_file", task_id)] * 2
    assert tasks(system) == [(answer.run.id, 2, True)]


async def test_small_talk_opens_no_task(system: System, ana: Person, wire: Wire) -> None:
    await ana.say("hola")
    await told_all(system)
    assert wire.calls == []


async def test_an_evicted_result_is_shown_whole_and_what_is_read_of_it_later_too(
    system: System, ana: Person, wire: Wire
) -> None:
    text = "".join(f"línea {number:05d}\n" for number in range(2_000))
    system.sandbox.joinpath("large.txt").write_text(text)
    first = await ana.say("lee large.txt")
    [call] = first.run.tool_calls
    assert call.pointer
    await ana.say(f"lee la salida {call.pointer} desde 0 hasta 600")
    await ana.say(f"busca «00007» en la salida {call.pointer}")
    await told_all(system)
    assert [shown["tool"] for shown in wire.shown] == ["read_file", "read_output", "search_output"]
    assert wire.shown[0]["result_text"] == text
    assert wire.shown[1]["result_text"].endswith(text[:600])
    assert "00007" in wire.shown[2]["result_text"]
    assert [results for _, results, _ in tasks(system)] == [1, 1, 1]


@pytest.mark.parametrize(("ask", "said"), [("lee a.txt", "no lo he hecho"), ("read a.txt", "I did not do it")])
async def test_where_no_task_can_be_opened_not_even_a_read_runs_and_the_person_is_told(
    system: System, ana: Person, wire: Wire, ask: str, said: str
) -> None:
    system.sandbox.joinpath("a.txt").write_text("text of a")
    wire.down = {"begin_task"}
    answer = await ana.say(ask)
    assert (answer.run.status, answer.run.reason) == (FAILED, "GATE_UNAVAILABLE")
    assert said in answer.reply.text
    assert "text of a" not in answer.reply.text
    assert wire.asked_in == []
    wire.down = set()
    assert "text of a" in (await ana.say(ask)).reply.text


@pytest.mark.slow
async def test_where_a_result_cannot_be_shown_the_next_step_does_not_run(
    system: System, ana: Person, wire: Wire
) -> None:
    system.sandbox.joinpath("a.txt").write_text("text of a")
    system.sandbox.joinpath("b.txt").write_text("text of b")
    wire.down = {"observe"}
    answer = await ana.say("lee a.txt y luego lee b.txt")
    assert (answer.run.status, answer.run.reason) == (FAILED, "GATE_UNAVAILABLE")
    assert [tool for tool, _ in wire.asked_in] == ["read_file"]
    assert "text of b" not in answer.reply.text
    wire.down = set()
    await told_all(system)
    assert tasks(system) == [(answer.run.id, 1, True)]


async def test_a_result_riskgate_will_not_take_closes_the_rest_of_the_run_with_its_reason(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.sandbox.joinpath("a.txt").write_text("text of a")
    system.sandbox.joinpath("b.txt").write_text("text of b")

    async def full(*_shown: Any) -> None:
        raise GateRefusedError("TASK_FULL", "no room")

    monkeypatch.setattr(RiskGateAdapter, "observe", full)
    answer = await ana.say("lee a.txt y luego lee b.txt")
    assert (answer.run.status, answer.run.reason) == (DONE, "BLOCKED")
    assert "no aceptó el resultado" in answer.reply.text
    assert "text of b" not in answer.reply.text
    assert [(call.state, call.error_code) for call in answer.run.tool_calls] == [
        ("finished", ""),
        ("denied", "RESULT_NOT_SHOWN"),
    ]


async def test_two_tasks_at_once_on_one_thread_are_kept_apart(system: System, ana: Person, wire: Wire) -> None:
    for name in ("a", "b"):
        system.sandbox.joinpath(f"{name}.txt").write_text(f"text of {name}")
    wire.down = {"end_task"}  # so that the first is still open while the second is served
    answers = await asyncio.gather(ana.say("lee a.txt"), ana.say("lee b.txt"))
    assert [answer.run.status for answer in answers] == [DONE, DONE]
    assert dict(wire.begun.values()) == {"lee a.txt": "", "lee b.txt": ""}
    task_of = {words: task_id for task_id, (words, _) in wire.begun.items()}
    assert {task_id for _, task_id in wire.asked_in} == set(task_of.values())
    for _ in range(_TRIES):
        if len(wire.shown) == 2:
            break
        await asyncio.sleep(0.02)
    shown = {item["task_id"]: item["result_text"] for item in wire.shown}
    assert shown == {task_of["lee a.txt"]: "text of a", task_of["lee b.txt"]: "text of b"}
    assert [(results, ended) for _, results, ended in tasks(system)] == [(1, False), (1, False)]
    wire.down = set()
    await told_all(system)
    assert [ended for *_, ended in tasks(system)] == [True, True]


async def test_what_a_person_answers_in_a_suspended_run_continues_its_task(
    system: System, ana: Person, wire: Wire
) -> None:
    asked = await ana.say("lee no-existe.txt")
    assert (asked.run.status, asked.run.reason) == (SUSPENDED, "AWAITING_USER_INPUT")
    system.sandbox.joinpath("existe.txt").write_text("aquí estoy")
    answer = await ana.say("lee existe.txt")
    assert answer.run.id == asked.run.id
    await told_all(system)
    (first, begun), (_, continued) = wire.begun.items()
    assert (begun, continued) == (("lee no-existe.txt", ""), ("lee existe.txt", first))
    assert {shown["failed"] for shown in wire.shown if shown["task_id"] == first} == {True}
    assert [ended for *_, ended in tasks(system)] == [True, True]


async def test_json_riskgate_does_not_read_is_shown_as_text(system: System) -> None:
    gate = system.agent.services.gate(Owner("acme", "ana"))
    task_id = await gate.begin_task("run_x", thread_id="t1", words="algo", continues="")
    for name, text in {"deep": "[" * 100 + "1" + "]" * 100, "twice": '{"a":1,"a":2}', "nan": "[NaN]"}.items():
        about = {"task_id": task_id, "tool": "echo", "tool_call_id": name, "arguments_json": "{}", "failed": False}
        await gate.observe({**about, "result_json": text})
        await gate.observe({**about, "result_json": text})
    with pytest.raises(GateRefusedError, match="INVALID_REQUEST"):
        await gate.observe({**about, "tool_call_id": "no id", "result_json": "{}"})
    assert tasks(system) == [("run_x", 3, False)]


async def test_no_word_of_the_person_is_in_what_the_agent_logs(
    system: System, ana: Person, wire: Wire, capfd: pytest.CaptureFixture[str]
) -> None:
    wire.down = {"begin_task"}
    await ana.say("repite palabra-muy-secreta")
    wire.down = {"observe"}
    await ana.say("repite palabra-muy-secreta")
    wire.down = set()
    await told_all(system)
    captured = capfd.readouterr()
    assert "palabra-muy-secreta" not in captured.out + captured.err


@pytest.mark.slow
async def test_what_goes_on_after_an_approval_names_the_task_of_the_request_and_the_reply_opens_none(
    system: System, ana: Person, wire: Wire
) -> None:
    asked = await ana.say('añade "línea" a lista.txt y luego lee lista.txt')
    approval_id, code = approval_of(asked)
    await system.restart_agent()
    real = system.agent.services.gate
    system.agent.services.gate = lambda *whose: WatchedGate(real(*whose), wire)  # type: ignore[method-assign]
    assert (await ana.say("sí")).run.status == SUSPENDED
    assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
    await told_all(system)
    [(task_id, begun)] = wire.begun.items()
    assert begun == ('añade "línea" a lista.txt y luego lee lista.txt', "")
    # What waits for a person is asked ahead with what stands behind it, so the reading is asked about twice.
    assert {task for _, task in wire.asked_in} == {task_id}
    assert [tool for tool, _ in wire.asked_in if tool == "write_file"] == ["write_file"] * 2
    assert [(shown["tool"], shown["arguments_json"]) for shown in wire.shown] == [
        ("write_file", '{"append":true,"content":"línea","path":"lista.txt"}'),
        ("read_file", '{"path":"lista.txt"}'),
    ]
    assert tasks(system) == [(asked.run.id, 2, True)]


async def test_a_result_over_a_mebibyte_is_shown_cut_and_the_run_goes_on(
    system: System, ana: Person, wire: Wire
) -> None:
    system.sandbox.joinpath("big.txt").write_text("ñandú\n" * 200_000)
    system.sandbox.joinpath("a.txt").write_text("text of a")
    answer = await ana.say("lee big.txt y luego lee a.txt")
    assert (answer.run.status, "text of a" in answer.reply.text) == (DONE, True)
    await told_all(system)
    assert [len(shown["result_text"].encode()) <= 1024 * 1024 for shown in wire.shown] == [True, True]
    assert "bytes were not shown]" in wire.shown[0]["result_text"]
    assert tasks(system) == [(answer.run.id, 2, True)]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("repite a\x00b", "BLOCKED"),  # NUL is refused in arguments, not in a person's words
        ("repite " + "palabra " * 2_400, "ANSWERED"),
        ("repite \u202egnp.exe\u200b 👩\u200d👧", "ANSWERED"),
        ("repite línea\u2028otra\x1b[31m", "ANSWERED"),
    ],
    ids=["nul", "long", "invisible", "controls"],
)
async def test_whatever_a_person_types_opens_a_task(
    system: System, ana: Person, wire: Wire, said: str, reason: str
) -> None:
    answer = await ana.say(said)
    assert (answer.run.status, answer.run.reason) == (DONE, reason)
    await told_all(system)
    assert [words for words, _ in wire.begun.values()] == [said]
    assert len(wire.shown) == (reason == "ANSWERED")


async def test_riskgate_is_shown_the_file_a_call_would_replace_before_it_is_asked_and_once(
    system: System, ana: Person, wire: Wire
) -> None:
    system.sandbox.joinpath("notas.txt").write_text("mañana")
    asked = await ana.say('escribe "hola" en notas.txt')
    assert wire.methods() == ["begin_task", "observe", "evaluate"]
    (shown,) = wire.shown
    (call,) = asked.run.tool_calls
    assert (shown["tool"], shown["tool_call_id"]) == ("file_info", f"{call.tool_call_id}.info")
    found = json.loads(shown["result_json"])
    assert found.pop("modified")
    assert found == {"path": "notas.txt", "exists": True, "size": 7}
    approval_id, code = approval_of(asked)
    assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE
    await told_all(system)
    assert [one["tool"] for one in wire.shown] == ["file_info", "write_file"]
    assert [(call.tool, call.state) for call in (await ana.run(asked.run.id)).tool_calls] == [
        ("write_file", "finished")
    ]


async def test_an_undo_is_asked_about_and_brings_the_file_back(system: System, ana: Person) -> None:
    system.sandbox.joinpath("notas.txt").write_text("mañana")
    for words in ('escribe "hola" en notas.txt', "deshaz eso"):
        asked = await ana.say(words)
        assert asked.run.status == SUSPENDED
        approval_id, code = approval_of(asked)
        answer = await ana.say(f"APROBAR {approval_id} {code}")
        assert answer.run.status == DONE
    assert system.sandbox.joinpath("notas.txt").read_text() == "mañana"
    assert "«notas.txt» vuelve a estar como antes." in answer.reply.text
    nothing = await system.person("ben").say("undo")
    approval_id, code = approval_of(nothing)
    assert (
        "there is no change to undo in this conversation"
        in (await system.person("ben").say(f"APPROVE {approval_id} {code}")).reply.text
    )


@pytest.mark.parametrize("path", ["notes.txt", "evil.txt"])
async def test_a_look_at_a_file_vouches_for_no_name(tmp_path: Path, path: str) -> None:
    """The name in the answer is the one that was asked about: nobody but the caller says it."""
    async with open_system(tmp_path) as system:
        gate = system.agent.services.gate(Owner("acme", "ana"))
        decisions = []
        args = {"path": path, "content": "hello"}
        canonical = rfc8785.dumps(args).decode()
        proposed = ProposedCall(
            "write_file", "c1", args, canonical, "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()
        )
        for run_id in ("run_1", "run_2"):
            task_id = await gate.begin_task(run_id, thread_id="t1", words='Write "hello" to notes.txt', continues="")
            if run_id == "run_2":
                found = json.dumps({"path": path, "exists": True, "size": 5, "modified": "2026-11-22T10:00:00Z"})
                result = Result(json.dumps({"path": path}), found, failed=False)
                await gate.observe(observation(task_id, "r1", "file_info", "c1.info", result, spec=FILE_INFO))
            where = CallContext("t1", run_id, plan_step="1", pathway="tool_intent")
            decision = await gate.evaluate(proposed, where, task_id=task_id)
            decisions.append((decision.decision, [reason.code for reason in decision.reasons]))
        # A file that is there is not replaced without a word; a name the person did not say is asked about as before.
        assert [decision for decision, _ in decisions] == (
            ["ALLOW", "AUTH_REQUIRED"] if path == "notes.txt" else ["AUTH_REQUIRED", "AUTH_REQUIRED"]
        )

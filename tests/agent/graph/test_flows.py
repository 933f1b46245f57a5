"""Whole turns through the graph, with stores that use the strict serializer."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from phylactery_agent.tools.contract import Implementation
from phylactery_agent.tools.named_folders import person_folder
from phylactery_agent.tools.registry import DisabledReason

from tests.support.agent import counter_tool as counter
from tests.support.agent.graph import Chat, ended, said


@pytest.fixture
def chat(tmp_path: Path) -> Chat:
    counter.counted.clear()
    counter.behaviour.update(flaky_failures=0, count_raises=0)
    made = Chat(tmp_path)
    (made.sandbox / "notas.txt").write_text("hola mundo")
    return made


@pytest.fixture
async def sqlite_saver(tmp_path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        yield saver


async def test_a_read_is_allowed_and_its_text_is_in_the_reply(chat: Chat) -> None:
    state = await chat.say("lee notas.txt")
    assert ended(state) == ("done", "ANSWERED")
    assert said(state) == "Contenido de «notas.txt»:\nhola mundo"
    assert chat.events.kinds() == [
        "route_decided",
        "step",
        "step",
        "tool_proposed",
        "risk_decision",
        "tool_result",
        "step",
    ]


async def test_the_same_in_english_and_in_two_steps(chat: Chat) -> None:
    state = await chat.say("read notas.txt and then echo done")
    assert said(state) == "Contents of “notas.txt”:\nhola mundo\n\ndone"
    assert [step["status"] for step in state["steps"].values()] == ["done", "done"]


@pytest.mark.parametrize(
    ("text", "part"), [("hola", "¡Hola!"), ("thanks", "welcome"), ("help", "read notes.txt"), ("bye", "Goodbye")]
)
async def test_small_talk_is_answered_without_a_plan_or_a_tool(chat: Chat, text: str, part: str) -> None:
    state = await chat.say(text)
    assert part in said(state)
    assert ended(state) == ("done", "ANSWERED")
    assert (state["plan"], chat.gate.calls) == ([], [])


async def test_what_is_not_understood_is_asked_about_and_the_next_message_is_planned(chat: Chat) -> None:
    state = await chat.say("haz el pino")
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert "haz el pino" in said(state)
    state = await chat.say("lee notas.txt")
    assert state["run_id"] == "rn_1"
    assert ended(state) == ("done", "ANSWERED")
    assert "hola mundo" in said(state)


@pytest.mark.parametrize(
    ("request_text", "asked"),
    [
        (
            "write hello to a.txt unless it exists",
            (
                "“write hello to a.txt unless it exists” depends on a condition, and I cannot tell whether it holds."
                " I have done nothing. If you want it now, ask without the condition."
            ),
        ),
        (
            "escribe el contenido de notas.txt en c.txt",
            (
                "No sé copiar un archivo en otro, y no he hecho nada de"
                " «escribe el contenido de notas.txt en c.txt»."
                " Pídeme que te lea el primero, o dame entre comillas el texto que quieres escribir."
            ),
        ),
    ],
)
async def test_what_is_understood_in_part_is_asked_about_in_plain_words_and_nothing_is_called(
    chat: Chat, request_text: str, asked: str
) -> None:
    state = await chat.say(request_text)
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert (said(state), chat.gate.calls) == (asked, [])


async def test_small_talk_after_a_question_ends_the_run(chat: Chat) -> None:
    await chat.say("haz el pino")
    assert ended(await chat.say("hola")) == ("done", "ANSWERED")


async def test_an_approval_reply_after_a_question_keeps_the_question_open(chat: Chat) -> None:
    await chat.say("haz el pino")
    state = await chat.say("APROBAR ap_nothing code_1234")
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert "no es tuyo" in said(state)


async def test_a_blocked_call_is_explained_in_the_persons_language_and_not_retried(chat: Chat) -> None:
    chat.gate.policy["read_file"] = "BLOCKED"
    state = await chat.say("lee notas.txt y luego repite hola")
    assert ended(state) == ("done", "BLOCKED")
    assert said(state) == "No lo he hecho: la política dice que no\n\nQueda sin hacer: repite hola"
    assert (state["steps"]["s1"]["status"], state["steps"]["s1"]["tries"]) == ("blocked", 1)
    assert "policy says no" in said(await chat.say("read notas.txt"))
    assert [row.state for row in chat.ledger.rows.values()] == ["denied", "denied"]


@pytest.mark.parametrize(
    ("request_text", "told"),
    [
        (
            "envía un correo a ana@example.com diciendo hola",
            "Aquí no puedo enviar un correo. (Para quien administra el servicio: define AGENT_SMTP_HOST.)",
        ),
        (
            "send an email to ana@example.com saying hi",
            "I can't send an e-mail here. (For the operator: set AGENT_SMTP_HOST.)",
        ),
    ],
)
async def test_what_a_tool_that_is_off_would_do_is_told_as_that(chat: Chat, request_text: str, told: str) -> None:
    chat.tools.object_to("send_email", "test", "NOT_CONFIGURED")
    state = await chat.say(request_text)
    assert told in said(state)
    assert chat.ledger.rows == {}


@pytest.mark.parametrize("reason", sorted({*get_args(DisabledReason)} - {"NOT_FOR_GUESTS"}))  # tests/agent/guests
async def test_every_reason_why_a_tool_is_off_is_told_in_words(chat: Chat, reason: DisabledReason) -> None:
    chat.tools.object_to("echo", "test", reason)
    told = said(await chat.say("echo what is there to say"))
    assert re.fullmatch(r"I can't repeat a text here\. \(For the operator: [^_()]+\.\)", told), told


async def test_a_final_failure_is_re_planned_at_once_with_another_reading_then_the_person_is_asked(chat: Chat) -> None:
    state = await chat.say("lee otra.txt.")
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert [(step["status"], step["tries"]) for step in state["steps"].values()] == [("failed", 1), ("failed", 1)]
    assert state["budgets"]["replans"] == 2
    assert "«lee otra.txt.»: no existe ese archivo o carpeta" in said(state)
    assert [row.error_code for row in chat.ledger.rows.values()] == ["NOT_FOUND"] * 2


async def test_a_failure_that_may_pass_is_tried_three_times(chat: Chat) -> None:
    counter.behaviour["flaky_failures"] = 9
    state = await chat.say("repite uno y luego flaky uno y luego repite dos")
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert [(step["status"], step["tries"]) for step in state["steps"].values()][1] == ("failed", 3)
    assert "«flaky uno» en 3 intentos: BUSY" in said(state)
    assert [row.error_code for row in chat.ledger.rows.values()] == ["", "BUSY", "BUSY", "BUSY"]


async def test_a_final_failure_with_one_reading_asks_without_trying_the_same_again(chat: Chat) -> None:
    state = await chat.say("lee nada.txt")
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert (state["budgets"]["replans"], len(chat.ledger.rows)) == (1, 1)


async def test_a_re_plan_takes_the_other_reading_when_there_is_room(chat: Chat) -> None:
    (chat.sandbox / "raro.txt.").write_text("con punto")
    state = await chat.say("lee raro.txt.")
    assert "con punto" in said(state)
    assert [step["status"] for step in state["steps"].values()] == ["failed", "done"]
    assert ended(state) == ("done", "ANSWERED")


async def test_a_failure_is_told_with_what_was_done_and_what_was_not(chat: Chat) -> None:
    state = await chat.say("repite hola y luego lee nada.txt y luego repite adiós")
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert said(state).startswith("hola\n\n")
    assert "«lee nada.txt»: no existe ese archivo o carpeta" in said(state)
    assert "Queda sin hacer: repite adiós" in said(state)
    state = await chat.say("continúa")
    assert "«lee nada.txt»: no existe" in said(state)
    assert len(chat.ledger.rows) == 2


async def test_a_tool_that_recovers_within_three_tries_is_done(chat: Chat) -> None:
    counter.behaviour["flaky_failures"] = 2
    state = await chat.say("flaky one")
    assert said(state) == "flaky one"
    assert (state["steps"]["s1"]["status"], state["steps"]["s1"]["tries"]) == ("done", 3)
    assert counter.counted == ["one"] * 3


async def test_a_large_output_is_evicted_by_its_size_and_read_back_by_range(chat: Chat) -> None:
    (chat.sandbox / "grande.txt").write_text("0123456789" * 1_001)
    state = await chat.say("lee grande.txt")
    pointer = state["steps"]["s1"]["result_pointer"]
    assert "[EVICTED" not in said(state)
    assert f"lee la salida {pointer} desde 0" in said(state)
    result = state["last_tool_result"]
    assert (result["status"], result["size_chars"], result["rehydration_allowed"]) == ("evicted", 10_010, True)
    assert [row.output for row in chat.ledger.rows.values()] == [None]
    state = await chat.say(f"lee la salida {pointer} desde 10000 hasta 10010")
    assert said(state) == f"Salida {pointer}:\n[10000-10010 / 10010]\n0123456789"


async def test_an_output_at_the_bound_stays_inline(chat: Chat) -> None:
    (chat.sandbox / "justo.txt").write_text("x" * 10_000)
    state = await chat.say("lee justo.txt")
    assert said(state).endswith("x" * 10_000)
    assert chat.outputs.stored == {}


async def test_what_read_output_answers_is_never_evicted_again(chat: Chat) -> None:
    chat.outputs.stored["out_abcdefgh"] = "y" * 20_000
    state = await chat.say("lee la salida out_abcdefgh desde 0 hasta 10000")
    assert state["last_tool_result"]["status"] == "success"
    assert list(chat.outputs.stored) == ["out_abcdefgh"]


async def test_without_memory_the_original_stays_inline(chat: Chat) -> None:
    chat.outputs.available = False
    (chat.sandbox / "grande.txt").write_text("z" * 12_000)
    state = await chat.say("lee grande.txt")
    assert said(state).endswith("z" * 12_000)
    assert state["last_tool_result"]["metadata"]["not_evicted"] == "MEMORY_UNAVAILABLE"
    assert ended(state) == ("done", "ANSWERED")


async def test_a_reply_quotes_only_so_much_of_what_memory_did_not_take(chat: Chat) -> None:
    chat.outputs.available = False
    (chat.sandbox / "enorme.txt").write_text("z" * 500_000)
    state = await chat.say("lee enorme.txt")
    assert len(said(state)) < 21_000
    assert "Faltan 480000 caracteres" in said(state)
    assert len(state["last_tool_result"]["output"]) == 500_000


async def test_a_long_request_is_named_shortly_in_plan_and_question(chat: Chat) -> None:
    state = await chat.say("repite " + "x" * 9_000)
    assert said(state) == "x" * 9_000
    assert len(state["steps"]["s1"]["description"]) == 200
    assert len(said(await chat.say("w" * 9_000))) < 4_000


async def test_without_the_gate_nothing_runs_and_the_next_turn_works(chat: Chat) -> None:
    chat.gate.available = False
    state = await chat.say("count one")
    assert ended(state) == ("failed", "GATE_UNAVAILABLE")
    assert "did not do it" in said(state)
    assert counter.counted == []
    chat.gate.available = True
    assert ended(await chat.say("count one")) == ("done", "ANSWERED")
    assert counter.counted == ["one"]


async def test_a_gate_lost_before_the_redeem_runs_nothing_and_closes_the_row(chat: Chat) -> None:
    chat.gate.down.add("redeem")
    state = await chat.say("count one")
    assert ended(state) == ("failed", "GATE_UNAVAILABLE")
    assert counter.counted == []
    assert [(row.state, row.error_code) for row in chat.ledger.rows.values()] == [("finished", "GATE_UNAVAILABLE")]


async def test_a_turn_ends_at_its_limit_of_supersteps_and_goes_on_when_asked(chat: Chat) -> None:
    request = " y luego ".join(f"repite número {number}" for number in range(1, 7))
    state = await chat.say(request)
    assert ended(state) == ("suspended", "STEP_LIMIT")
    assert state["budgets"]["supersteps"] <= 26
    assert "número 4" in said(state)
    assert "Queda sin hacer: repite número 5; repite número 6" in said(state)
    state = await chat.say("continúa")
    assert ended(state) == ("done", "ANSWERED")
    assert said(state) == "número 5\n\nnúmero 6"
    assert state["run_id"] == "rn_1"


async def test_a_run_ends_at_its_limit_of_tool_calls(chat: Chat) -> None:
    state = await chat.say(" y luego ".join(f"repite número {number}" for number in range(14)))
    while state["run_status"] == "suspended":
        state = await chat.say("sigue")
    assert ended(state) == ("failed", "TOOL_CALL_LIMIT")
    assert len(chat.ledger.rows) == 12
    assert "número 12" in said(state)


async def test_a_session_with_narrowed_tools_is_told_so(chat: Chat) -> None:
    chat.allowed_tools = ("echo",)
    state = await chat.say("lee notas.txt")
    assert ended(state) == ("done", "BLOCKED")
    assert "no tienes permiso para usar esta herramienta" in said(state)
    assert chat.gate.calls == []


async def test_the_next_run_begins_clean(chat: Chat) -> None:
    await chat.say("lee notas.txt")
    state = await chat.say("hola")
    assert (state["plan"], state["steps"], state["last_tool_result"], state["current_step"]) == ([], {}, None, None)
    assert state["budgets"] == {"supersteps": 2, "tool_calls": 0, "replans": 0, "step_numbers": 0}


async def test_two_plans_in_one_run_never_share_a_step_or_a_call_id(chat: Chat) -> None:
    await chat.say("lee nada.txt")
    state = await chat.say("lee notas.txt")
    assert state["run_id"] == "rn_1"
    assert list(state["steps"]) == ["s2"]
    assert len(chat.ledger.rows) == 2


async def test_the_state_is_plain_json_at_every_checkpoint_and_holds_no_secret(chat: Chat) -> None:
    await chat.say('lee notas.txt y luego escribe "hola" en b.txt')
    await chat.say("APROBAR ap_waiting0 code-0-right")
    seen = 0
    async for snapshot in chat.graph.aget_state_history(chat.config):
        text = json.dumps(snapshot.values)
        assert json.loads(text) == snapshot.values
        assert "code-0-right" not in text
        assert "permit-" not in text
        seen += 1
    assert seen > 15


async def test_a_suspended_run_goes_on_in_another_process_over_the_stored_checkpoint(
    tmp_path: Path, sqlite_saver: AsyncSqliteSaver
) -> None:
    before = Chat(tmp_path, sqlite_saver)
    state = await before.say('escribe "hola" en b.txt')
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    after = Chat(tmp_path, sqlite_saver)
    after.gate, after.ledger, after.turns, after.runs = before.gate, before.ledger, before.turns, before.runs
    state = await after.say("APROBAR ap_waiting0 code-0-right")
    assert ended(state) == ("done", "ANSWERED")
    assert (person_folder(tmp_path / "sandbox", "acme", "ana") / "b.txt").read_bytes() == b"hola"
    assert state["run_id"] == "rn_1"


async def test_the_window_stays_bounded(chat: Chat) -> None:
    for _ in range(15):
        state = await chat.say("haz el pino")
    assert len(state["messages"]) == 20
    assert state["messages"][-1] == {"id": state["reply"]["id"], "role": "assistant", "content": said(state)}


async def test_a_request_of_more_steps_than_a_plan_holds_begins_none_of_them(chat: Chat) -> None:
    state = await chat.say("; ".join(f"repite {number}" for number in range(51)))
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert "demasiados pasos" in said(state)
    assert chat.events.of("step") == []
    assert ended(await chat.say("repite hola")) == ("done", "ANSWERED")


async def test_an_output_without_a_form_on_the_wire_gets_one(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    async def half(_invocation: Any) -> str:
        return "half \ud83d"

    monkeypatch.setitem(chat.executor._implementations, "count", Implementation(run=half))
    state = await chat.say("count one")
    assert said(state).encode() == b"half ?"
    assert [row.output for row in chat.ledger.rows.values()] == ["half ?"]


async def test_an_allowed_call_is_asked_about_once_and_its_permit_is_in_no_checkpoint(chat: Chat) -> None:
    await chat.say("count one")
    assert [method for method, _ in chat.gate.calls if method in {"evaluate", "redeem"}] == ["evaluate", "redeem"]
    assert len(chat.gate.permits) == 1
    async for saved in chat.graph.aget_state_history(chat.config):
        assert "permit-" not in str(saved)

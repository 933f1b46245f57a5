"""Approvals through the graph: granted, refused, late, wrong, replayed, decided elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.agent.graph import Chat, ended, said
from tests.support.agent.react import opened
from tests.support.agent.scripted_model import ScriptedModel

WRITE = 'escribe "hola" en b.txt'
YES = "APROBAR ap_waiting0 code-0-right"


@pytest.fixture
async def chat(tmp_path: Path) -> Chat:
    made = Chat(tmp_path)
    await made.say(WRITE)
    return made


def written(chat: Chat) -> str | None:
    target = chat.sandbox / "b.txt"
    return target.read_text() if target.exists() else None


def nothing_waits(state: dict[str, Any]) -> bool:
    return not state["awaiting_approval"] and all(
        state[name] is None for name in ("approval_id", "approval_hash", "approval_state", "proposed_tool")
    )


async def test_a_yes_runs_the_call_once_where_it_stopped(chat: Chat) -> None:
    assert written(chat) is None
    state = await chat.say(YES)
    assert ended(state) == ("done", "ANSWERED")
    assert said(state) == "Guardado en «b.txt»."
    assert written(chat) == "hola"
    assert nothing_waits(state)
    assert state["run_id"] == "rn_1"
    assert [told["decision"] for told in chat.events.of("risk_decision")] == ["AUTH_REQUIRED", "ALLOW"]
    assert len(chat.ledger.rows) == 1


async def test_every_evaluate_tells_the_pathway_of_the_request_whatever_woke_the_run(chat: Chat) -> None:
    assert chat.gate.pathways == ["tool_intent"]
    assert (await chat.say("hola"))["pathway"] == "text_fast_path"
    chat.gate.decide_elsewhere("ap_waiting0", "APPROVED")
    await chat.wake()
    assert written(chat) == "hola"
    assert chat.gate.pathways == ["tool_intent", "tool_intent"]


async def test_the_english_yes_is_the_same(chat: Chat) -> None:
    assert ended(await chat.say("APPROVE ap_waiting0 code-0-right")) == ("done", "ANSWERED")
    assert written(chat) == "hola"


async def test_the_same_yes_again_is_refused_with_its_reason_and_reads_only(chat: Chat) -> None:
    await chat.say(YES)
    chat.gate.calls.clear()
    state = await chat.say(YES)
    assert "ya se usó" in said(state)
    assert ended(state) == ("done", "NOTHING_WAITS")
    assert chat.gate.calls == [("get_approval", "ap_waiting0")]


@pytest.mark.parametrize(
    ("approval", "part"),
    [("REJECTED", "fue rechazado"), ("EXPIRED", "ha caducado"), ("CANCELLED", "se retiró"), ("PENDING", "pendiente")],
)
async def test_a_reply_while_nothing_waits_is_explained_by_the_approvals_state(
    tmp_path: Path, chat: Chat, approval: str, part: str
) -> None:
    other = Chat(tmp_path)
    other.gate = chat.gate
    chat.gate.decide_elsewhere("ap_waiting0", approval)
    assert part in said(await other.say(YES))


async def test_a_reply_to_an_unknown_approval_or_without_the_gate_is_answered(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    assert "eso no es tuyo" in said(await chat.say("APROBAR ap_nothing code_1234"))
    chat.gate.available = False
    assert "no se puede comprobar" in said(await chat.say("RECHAZAR ap_nothing"))


async def test_other_text_while_waiting_keeps_the_approval_and_proposes_nothing(chat: Chat) -> None:
    chat.gate.calls.clear()
    for text in ("lee notas.txt", "hola", "aprobar ap_waiting0 code-0-right", "APROBAR ap_waiting0", "haz el pino"):
        state = await chat.say(text)
        assert ended(state) == ("suspended", "AWAITING_APPROVAL")
        assert 'Aún espero tu sí o tu no: «escribe "hola" en b.txt».' in said(state)
        assert state["approval_id"] == "ap_waiting0"
    assert chat.gate.calls == []
    assert len(chat.ledger.rows) == 1
    assert ended(await chat.say(YES)) == ("done", "ANSWERED")


async def test_a_no_clears_everything_and_writes_nothing(chat: Chat) -> None:
    state = await chat.say("RECHAZAR ap_waiting0")
    assert ended(state) == ("done", "APPROVAL_REJECTED")
    assert nothing_waits(state)
    assert written(chat) is None
    assert state["steps"]["s1"]["status"] == "blocked"
    assert [(row.state, row.error_code) for row in chat.ledger.rows.values()] == [("denied", "REJECTED")]


async def test_a_no_leaves_the_later_steps_undone_and_says_so(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    await chat.say(f"{WRITE} y luego repite listo")
    state = await chat.say("RECHAZAR ap_waiting0")
    assert "Queda sin hacer: repite listo" in said(state)
    assert state["steps"]["s2"]["status"] == "pending"


async def test_after_a_yes_the_plan_goes_on(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    await chat.say(f"{WRITE} y luego lee b.txt")
    assert said(await chat.say(YES)) == "Guardado en «b.txt».\n\nContenido de «b.txt»:\nhola"


async def test_two_approvals_in_one_run_come_one_after_the_other(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    await chat.say(f'{WRITE} y luego añade "!" a b.txt')
    state = await chat.say(YES)
    assert (ended(state), state["approval_id"]) == (("suspended", "AWAITING_APPROVAL"), "ap_waiting1")
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert said(state) == (
        'Eso no espera tu respuesta: ya se usó. No he cambiado nada. Aún espero tu sí o tu no: «añade "!" a b.txt».'
    )
    assert ended(await chat.say("APROBAR ap_waiting1 code-1-right")) == ("done", "ANSWERED")
    assert written(chat) == "hola\n!\n"


@pytest.mark.parametrize("graph", ["secured", "react"])
async def test_a_yes_to_nobody_knows_what_changes_nothing_and_is_told_in_one_line_what_waits_and_the_way_out(
    tmp_path: Path, model: ScriptedModel, graph: str
) -> None:
    chat = Chat(tmp_path) if graph == "secured" else opened(tmp_path, model)
    chat.model = None
    await chat.say(WRITE)
    line = 'Aún espero tu sí o tu no: «escribe "hola" en b.txt».'
    state = await chat.say("sí")
    note = f"No está claro a qué respondes, así que no he cambiado nada. {line}"
    assert (ended(state), said(state)) == (("suspended", "AWAITING_APPROVAL"), note)
    state = await chat.say("¿y qué hay en la lista de la compra?")
    note = f"Aquí ya hay demasiadas cosas en espera, así que no he empezado esto: responde antes a alguna. {line}"
    assert (ended(state), said(state)) == (("suspended", "AWAITING_APPROVAL"), note)
    assert written(chat) is None
    assert ended(await chat.say(YES)) == ("done", "ANSWERED")


async def test_a_wrong_code_says_how_many_tries_are_left_and_keeps_waiting(chat: Chat) -> None:
    state = await chat.say("APROBAR ap_waiting0 code-wrong")
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert "Te quedan 4 intentos" in said(state)
    assert ended(await chat.say(YES)) == ("done", "ANSWERED")


async def test_five_wrong_codes_close_the_approval_and_clear_the_run(chat: Chat) -> None:
    for _ in range(4):
        assert ended(await chat.say("APROBAR ap_waiting0 code-wrong")) == ("suspended", "AWAITING_APPROVAL")
    state = await chat.say("APROBAR ap_waiting0 code-wrong")
    assert ended(state) == ("done", "APPROVAL_CANCELLED")
    assert nothing_waits(state)
    assert "se retiró" in said(await chat.say(YES))
    assert written(chat) is None


async def test_a_wrong_id_is_named_and_costs_no_attempt(chat: Chat) -> None:
    state = await chat.say("APROBAR ap_another code-0-right")
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert "Eso no espera tu respuesta: no es tuyo." in said(state)
    assert "ap_waiting0" not in said(state)
    assert chat.gate.approvals["ap_waiting0"].attempts_left == 5
    assert (await chat.say("RECHAZAR ap_another"))["approval_id"] == "ap_waiting0"


async def test_an_approval_that_expired_ends_the_run(chat: Chat) -> None:
    chat.gate.decide_elsewhere("ap_waiting0", "EXPIRED")
    state = await chat.say(YES)
    assert ended(state) == ("done", "APPROVAL_EXPIRED")
    assert nothing_waits(state)
    assert written(chat) is None


@pytest.mark.parametrize(
    ("decided", "end"),
    [
        ("APPROVED", ("done", "ANSWERED")),
        ("REJECTED", ("done", "APPROVAL_REJECTED")),
        ("EXPIRED", ("done", "APPROVAL_EXPIRED")),
        ("CANCELLED", ("done", "APPROVAL_CANCELLED")),
        ("PENDING", ("suspended", "AWAITING_APPROVAL")),
    ],
)
async def test_an_approval_decided_at_riskgate_wakes_the_run(chat: Chat, decided: str, end: tuple[str, str]) -> None:
    chat.gate.decide_elsewhere("ap_waiting0", decided)
    state = await chat.wake()
    assert ended(state) == end
    assert written(chat) == ("hola" if decided == "APPROVED" else None)


async def test_a_late_wake_after_the_run_went_on_does_nothing(chat: Chat) -> None:
    await chat.say(YES)
    chat.gate.calls.clear()
    assert ended(await chat.wake()) == ("done", "ANSWERED")
    assert chat.gate.calls == []


async def test_a_wake_while_the_person_is_asked_something_keeps_the_question(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    await chat.say("haz el pino")
    assert ended(await chat.wake()) == ("suspended", "AWAITING_USER_INPUT")


async def test_a_class_that_another_person_answers_is_refused_in_the_chat_and_keeps_waiting(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    chat.gate.approval_class = "peer"
    await chat.say(WRITE)
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert "otra persona" in said(state)
    chat.gate.decide_elsewhere("ap_waiting0", "APPROVED")
    assert ended(await chat.wake()) == ("done", "ANSWERED")


async def test_a_code_lost_with_its_process_is_asked_for_again(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    real = chat._context

    def without_code(language: Any) -> Any:
        from dataclasses import replace

        return replace(real(language), reply_code="")

    monkeypatch.setattr(chat, "_context", without_code)
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "AWAITING_APPROVAL")
    assert "Envíala otra vez" in said(state)
    assert chat.gate.approvals["ap_waiting0"].attempts_left == 5


async def test_the_gate_away_at_the_answer_keeps_the_run_waiting(chat: Chat) -> None:
    chat.gate.available = False
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "GATE_UNAVAILABLE")
    assert state["awaiting_approval"]
    chat.gate.available = True
    assert ended(await chat.say(YES)) == ("done", "ANSWERED")
    assert written(chat) == "hola"


@pytest.mark.parametrize("method", ["evaluate", "redeem"])
async def test_the_gate_away_after_the_yes_keeps_the_yes(chat: Chat, method: str) -> None:
    chat.gate.down.add(method)
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "GATE_UNAVAILABLE")
    assert written(chat) is None
    chat.gate.down.clear()
    assert ended(await chat.wake()) == ("done", "ANSWERED")
    assert written(chat) == "hola"


async def test_a_yes_that_expires_while_the_gate_is_away_closes_the_started_row(chat: Chat) -> None:
    chat.gate.down.add("redeem")
    await chat.say(YES)
    chat.gate.down.clear()
    chat.gate.decide_elsewhere("ap_waiting0", "EXPIRED")
    assert ended(await chat.wake()) == ("done", "APPROVAL_EXPIRED")
    assert [(row.state, row.error_code) for row in chat.ledger.rows.values()] == [("finished", "EXPIRED")]
    assert written(chat) is None


async def test_arguments_bound_otherwise_than_approved_never_run(chat: Chat) -> None:
    config = chat.config
    await chat.graph.aupdate_state(config, {"approval_hash": "sha256:" + "0" * 64}, as_node="Finalizer")
    chat.gate.decide_elsewhere("ap_waiting0", "APPROVED")
    state = await chat.wake()
    assert ended(state) == ("done", "BLOCKED")
    assert "no es lo que se iba a hacer" in said(state)
    assert written(chat) is None


async def test_a_policy_that_became_stricter_after_the_yes_wins(chat: Chat) -> None:
    chat.gate.policy["write_file"] = "BLOCKED"
    state = await chat.say(YES)
    assert ended(state) == ("done", "BLOCKED")
    assert written(chat) is None


async def test_a_failed_write_under_an_approval_is_not_tried_again_behind_the_persons_back(tmp_path: Path) -> None:
    chat = Chat(tmp_path)
    await chat.say('escribe "hola" en no/existe.txt')
    state = await chat.say(YES)
    assert ended(state) == ("suspended", "AWAITING_USER_INPUT")
    assert "»: no existe ese archivo o carpeta" in said(state)
    assert len(chat.gate.approvals) == 1

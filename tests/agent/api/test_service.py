"""The agent's gRPC service with the real RiskGate and memory: every flow of one chat turn."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery_agent.adapters.riskgate import RiskGateAdapter
from phylactery_agent.ports import Redeemed
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_chassis.errors import CommitUnknown
from phylactery_riskgate.keys import rotation
from phylactery_riskgate.keys.ring import read_signing
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, refused

WRITE = 'escribe "hola" en notas.txt'
APPEND = 'añade "línea" a lista.txt'


def kinds(events: list) -> list[str]:
    return [event.WhichOneof("kind") for event in events]


async def test_small_talk_is_answered_in_the_language_it_came_in(ana: Person) -> None:
    spanish, english = await ana.say("hola", "t1"), await ana.say("hello", "t2")
    assert spanish.run.status == english.run.status == DONE
    assert "Hola" in spanish.reply.text
    assert "Hello" in english.reply.text
    assert "Hello" in (await ana.say("hola", "t3", language="en")).reply.text


@pytest.mark.parametrize(
    ("before", "words", "told"),
    [
        ("read notas.txt please", "?", "I can do this"),
        ("read notas.txt please", "vale", "Muy bien."),
        ("read notas.txt please", "/reject", "Nothing"),
        ("read notas.txt please", "nevermind", "All right"),
        ("read notas.txt please", "hola", "¡Hola!"),
        ("read notas.txt please", "REJECT ap_aaaaaaaaaaaaaaaaaaaaaaaaaa", "Nothing is waiting"),
        ("lee notas.txt, por favor", "?", "Puedo hacer esto"),
        ("lee notas.txt, por favor", "ok", "Muy bien."),
        ("lee notas.txt, por favor", "nevermind", "De acuerdo"),
        ("lee notas.txt, por favor", "hello", "Hello!"),
        ("lee notas.txt, por favor", "read notas.txt please", "Contents of"),
    ],
)
async def test_a_word_of_one_language_alone_changes_the_language_of_a_conversation_and_no_other_does(
    system: System, ana: Person, before: str, words: str, told: str
) -> None:
    system.sandbox.joinpath("notas.txt").write_text("contenido")
    await ana.say(before)
    assert (await ana.say(words)).reply.text.startswith(told)


async def test_a_read_runs_without_asking_anybody(system: System, ana: Person) -> None:
    system.sandbox.joinpath("notas.txt").write_text("contenido")
    answer = await ana.say("lee notas.txt")
    assert answer.run.status == DONE
    assert "contenido" in answer.reply.text
    [record] = answer.run.tool_calls
    assert (record.tool, record.state, record.status) == ("read_file", "finished", "success")
    assert [(step.status, step.tries) for step in answer.run.plan_steps] == [("done", 1)]


async def test_a_write_waits_for_the_code_and_then_happens_once(system: System, ana: Person) -> None:
    asked = await ana.say(APPEND)
    assert (asked.run.status, asked.run.reason) == (SUSPENDED, "AWAITING_APPROVAL")
    assert asked.pending_approval.arguments[0].path == "/path"
    assert not system.sandbox.joinpath("lista.txt").exists()
    approval_id, code = approval_of(asked)
    done = await ana.say(f"APROBAR {approval_id} {code}")
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1
    assert not done.HasField("pending_approval")


async def test_other_text_while_an_approval_waits_keeps_it_waiting(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)
    await ana.say("lee otra.txt")
    waits = await ana.run(asked.run.id)
    assert (waits.status, waits.approval_id, len(waits.tool_calls)) == (SUSPENDED, approval_id, 1)
    assert (await ana.say(f"APROBAR {approval_id} {code}")).run.status == DONE


async def test_a_rejection_leaves_nothing_written_and_a_clean_thread(system: System, ana: Person) -> None:
    approval_id, _ = approval_of(await ana.say(WRITE))
    said_no = await ana.say(f"RECHAZAR {approval_id}")
    assert said_no.run.status == DONE
    assert not system.sandbox.joinpath("notas.txt").exists()
    thread = await ana.thread()
    assert not thread.HasField("pending_approval")
    assert thread.last_run.tool_calls[0].state == "denied"
    assert (await ana.say("hola")).run.id != said_no.run.id


async def test_an_expired_approval_writes_nothing(system: System, ana: Person) -> None:
    approval_id, code = approval_of(await ana.say(WRITE))
    system.clock.advance(601)
    late = await ana.say(f"APROBAR {approval_id} {code}")
    assert late.run.status == DONE
    assert "Nadie respondió a tiempo" in late.reply.text
    assert not system.sandbox.joinpath("notas.txt").exists()


async def test_an_expired_approval_is_also_noticed_without_an_answer(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    system.clock.advance(601)
    assert await system.agent.watcher.poll_once() == 1
    await system.agent.runner.idle()
    run = await ana.run(asked.run.id)
    assert (run.status, run.tool_calls[0].state) == (DONE, "denied")
    assert (await ana.transcript())[-1][0] == "assistant"
    assert await system.agent.watcher.poll_once() == 0


async def test_the_same_approval_again_is_refused_with_its_reason(system: System, ana: Person) -> None:
    approval_id, code = approval_of(await ana.say(APPEND))
    await ana.say(f"APROBAR {approval_id} {code}")
    again = await ana.say(f"APROBAR {approval_id} {code}")
    assert "ya se usó" in again.reply.text
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


async def test_a_wrong_code_five_times_closes_the_approval(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    approval_id, code = approval_of(asked)
    statuses = [(await ana.say(f"APROBAR {approval_id} WRONGCODE{n}")).run.status for n in range(5)]
    assert statuses == [SUSPENDED] * 4 + [DONE]
    await ana.say(f"APROBAR {approval_id} {code}")
    assert not system.sandbox.joinpath("notas.txt").exists()


async def test_a_call_outside_policy_is_blocked_and_explained(system: System, ana: Person) -> None:
    answer = await ana.say('escribe "x" en .env')
    assert answer.run.reason == "BLOCKED"
    assert answer.run.tool_calls[0].state == "denied"
    assert "No lo he hecho" in answer.reply.text
    assert not system.sandbox.joinpath(".env").exists()


async def test_a_large_output_is_evicted_and_read_back_by_range(system: System, ana: Person) -> None:
    text = "".join(f"{number:09d}\n" for number in range(2_000))
    system.sandbox.joinpath("grande.txt").write_text(text)
    answer = await ana.say("lee grande.txt")
    [record] = answer.run.tool_calls
    assert (record.status, record.size_chars) == ("evicted", 20_000)
    assert record.pointer in answer.reply.text
    part = await ana.say(f"lee la salida {record.pointer} desde 10000 hasta 10020")
    assert "000001000\n000001001" in part.reply.text


async def test_no_store_ever_holds_the_code(system: System, ana: Person) -> None:
    approval_id, code = approval_of(await ana.say(WRITE))
    await ana.say(f"por favor aprobar {approval_id} {code}")
    events = await ana.stream(f"APPROVE {approval_id} {code}")
    assert events[-1].run_finished.status == DONE
    assert ("user", f"APPROVE {approval_id} ________") in await ana.transcript()
    await system.stop("agent")
    assert code.encode() not in system.everything_stored()


async def test_the_stream_tells_the_turn_in_order_and_again_from_the_first(ana: Person) -> None:
    first = await ana.stream("repite hola", request_id="request-stream")
    again = await ana.stream("repite hola", request_id="request-stream")
    assert kinds(first)[0] == "run_started"
    assert kinds(first)[-2:] == ["message", "run_finished"]
    assert [event.sequence for event in first] == list(range(1, len(first) + 1))
    assert again == first


async def test_code_and_arguments_are_shown_only_while_the_approval_is_pending(ana: Person) -> None:
    live = await ana.stream(WRITE, request_id="request-ask")
    [asked] = [event.approval_required for event in live if event.HasField("approval_required")]
    assert asked.code
    assert [argument.display for argument in asked.arguments if argument.path == "/content"] == ['"hola"']
    pending = (await ana.thread()).pending_approval
    assert (pending.approval_id, pending.code) == (asked.approval_id, asked.code)
    await ana.say(f"APROBAR {asked.approval_id} {asked.code}")
    replay = await ana.stream(WRITE, request_id="request-ask")
    [then] = [event.approval_required for event in replay if event.HasField("approval_required")]
    assert (then.approval_id, then.code, len(then.arguments)) == (asked.approval_id, "", 0)
    assert [event.sequence for event in replay] == [event.sequence for event in live]


async def test_the_same_request_again_answers_the_same_turn_even_after_a_restart(system: System, ana: Person) -> None:
    first = await ana.say(APPEND, request_id="request-same")
    approval_id, code = approval_of(first)
    done = await ana.say(f"APROBAR {approval_id} {code}", request_id="request-yes")
    await system.restart_agent()
    again = await ana.say(f"APROBAR {approval_id} {code}", request_id="request-yes")
    assert (again.run.id, again.reply, again.last_sequence) == (done.run.id, done.reply, done.last_sequence)
    asked = await ana.say(APPEND, request_id="request-same")
    assert (asked.run.status, asked.reply) == (SUSPENDED, first.reply)
    assert not asked.HasField("pending_approval")
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


@pytest.mark.slow
async def test_the_same_request_at_once_is_one_turn(system: System, ana: Person) -> None:
    answers = await asyncio.gather(*(ana.say("repite hola", request_id="request-once") for _ in range(8)))
    assert len({answer.reply.id for answer in answers}) == 1
    assert len(await ana.transcript()) == 2


async def test_the_same_request_id_with_another_text_is_a_conflict(ana: Person) -> None:
    await ana.say("hola", request_id="request-once")
    with pytest.raises(aio.AioRpcError) as caught:
        await ana.say("adiós", request_id="request-once")
    error = refused(caught.value)
    assert (error.code, error.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_CONFLICT")


async def test_two_messages_at_once_on_one_thread_are_both_answered_in_order(ana: Person) -> None:
    answers = await asyncio.gather(*(ana.say(f"repite {n}") for n in range(6)))
    assert sorted(answer.reply.text for answer in answers) == [str(n) for n in range(6)]
    assert len({answer.run.id for answer in answers}) == 6
    roles = [role for role, _ in await ana.transcript()]
    assert roles == ["user", "assistant"] * 6


async def test_two_approvals_at_once_are_one_effect(system: System, ana: Person) -> None:
    approval_id, code = approval_of(await ana.say(APPEND))
    await asyncio.gather(
        *(ana.say(f"APROBAR {approval_id} {code}") for _ in range(4)), ana.approve_at_riskgate(approval_id)
    )
    await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


async def test_an_approval_decided_at_riskgate_continues_the_run(system: System, ana: Person) -> None:
    asked = await ana.say(APPEND)
    assert await system.agent.watcher.poll_once() == 0
    await ana.approve_at_riskgate(asked.pending_approval.approval_id)
    assert (await system.agent.watcher.poll_once(), await system.agent.watcher.poll_once()) == (1, 0)
    await system.agent.runner.idle()
    run = await ana.run(asked.run.id)
    assert (run.status, run.tool_calls[0].state) == (DONE, "finished")
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


async def test_an_approval_decided_at_riskgate_continues_the_run_though_the_answer_of_its_commit_is_lost(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await ana.say(APPEND)
    await ana.approve_at_riskgate(asked.pending_approval.approval_id)
    note = InboxStore.note_approval_decided

    async def loses(*noted: Any) -> None:
        assert await note(*noted) is not None
        monkeypatch.undo()
        raise CommitUnknown("STORE_UNAVAILABLE", "the outcome is unknown")

    monkeypatch.setattr(InboxStore, "note_approval_decided", loses)
    with pytest.raises(CommitUnknown):
        await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    assert (await ana.run(asked.run.id)).status == DONE
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


async def test_a_rejection_at_riskgate_ends_the_run(system: System, ana: Person) -> None:
    asked = await ana.say(WRITE)
    await ana.reject_at_riskgate(asked.pending_approval.approval_id)
    await system.agent.watcher.poll_once()
    await system.agent.runner.idle()
    assert (await ana.run(asked.run.id)).status == DONE
    assert not system.sandbox.joinpath("notas.txt").exists()


async def test_a_suspended_run_goes_on_in_another_process_life(system: System, ana: Person) -> None:
    asked = await ana.say(APPEND)
    approval_id, code = approval_of(asked)
    await system.restart_agent()
    done = await ana.say(f"APROBAR {approval_id} {code}")
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


async def test_another_users_thread_and_run_are_not_found(system: System, ana: Person) -> None:
    answer = await ana.say("hola")
    for stranger in (system.person("ben"), system.person("ana", tenant="other")):
        for call, reason in (
            (stranger.thread(), "THREAD_NOT_FOUND"),
            (stranger.transcript(), "THREAD_NOT_FOUND"),
            (stranger.run(answer.run.id), "RUN_NOT_FOUND"),
        ):
            with pytest.raises(aio.AioRpcError) as caught:
                await call
            error = refused(caught.value)
            assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, reason)


@pytest.mark.slow
async def test_users_and_tenants_who_name_a_thread_the_same_have_one_each_and_nothing_crosses(system: System) -> None:
    people = [system.person("ana"), system.person("ben"), system.person("ana", tenant="other")]
    asked = await asyncio.gather(
        *(person.say(f'añade "{number}" a lista-{number}.txt', "main") for number, person in enumerate(people))
    )
    waiting = [approval_of(answer) for answer in asked]
    assert len({answer.run.id for answer in asked}) == len({approval_id for approval_id, _ in waiting}) == 3
    for number, person in enumerate(people):
        approval_id, code = waiting[(number + 1) % 3]  # somebody else's, with the right code
        assert (await person.say(f"APROBAR {approval_id} {code}", "main")).run.status == SUSPENDED
        thread = await person.thread("main")
        assert (thread.id, thread.last_run.id) == ("main", asked[number].run.id)
        assert (thread.pending_approval.approval_id, thread.pending_approval.code) == waiting[number]
    assert list(system.sandbox.iterdir()) == []
    done = await asyncio.gather(
        *(
            person.say(f"APROBAR {approval_id} {code}", "main")
            for person, (approval_id, code) in zip(people, waiting, strict=True)
        )
    )
    for number, (person, answer) in enumerate(zip(people, done, strict=True)):
        assert (answer.run.id, answer.run.status) == (asked[number].run.id, DONE)
        folder = system.sandbox_of(*(value for _, value in person.metadata))
        assert folder.joinpath(f"lista-{number}.txt").read_text().count(str(number)) == 1
        said = await person.transcript("main")
        assert [role for role, _ in said] == ["user", "assistant"] * 3
        assert said[0] == ("user", f'añade "{number}" a lista-{number}.txt')
        events = await person.stream("repite hola", "main")
        assert [event.sequence for event in events] == list(range(events[0].sequence, events[0].sequence + len(events)))
        assert events[0].sequence == answer.last_sequence + 1


async def test_another_users_approval_moves_nothing(system: System, ana: Person) -> None:
    approval_id, code = approval_of(await ana.say(WRITE))
    ben = system.person("ben")
    await ben.say(f"APROBAR {approval_id} {code}", "of-ben")
    with pytest.raises(aio.AioRpcError) as caught:
        await ben.approve_at_riskgate(approval_id)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert (await ana.thread()).pending_approval.code == code
    assert not system.sandbox.joinpath("notas.txt").exists()


async def test_a_key_revoked_between_evaluate_and_redeem_costs_the_person_nothing(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    signing = RiskGateSettings(data_dir=system.folder / "riskgate").signing_file
    real, permits = RiskGateAdapter.redeem, []

    async def revoked_first(self: RiskGateAdapter, permit: str, *args: Any, **kwargs: Any) -> Redeemed:
        if not permits:
            old = read_signing(signing)[0][0].kid
            rotation.rotate(signing, time.time_ns() // 1_000)
            rotation.revoke(signing, old, time.time_ns() // 1_000)
        permits.append(permit)
        return await real(self, permit, *args, **kwargs)

    monkeypatch.setattr(RiskGateAdapter, "redeem", revoked_first)
    answer = await ana.say('repite "hola"')
    assert (answer.run.status, answer.reply.text) == (DONE, "hola")
    assert len(set(permits)) == len(permits) == 2


async def test_riskgate_records_the_pathway_of_the_request(system: System, ana: Person) -> None:
    asked = await ana.say(APPEND)
    approval_id, code = approval_of(asked)
    await ana.say(f"APROBAR {approval_id} {code}")
    with sqlite3.connect(system.folder / "riskgate" / "riskgate.db") as database:
        assert database.execute("SELECT pathway FROM decisions").fetchall() == [("tool_intent",)] * 2

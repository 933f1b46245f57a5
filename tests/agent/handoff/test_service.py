"""Handing a conversation to a person and back, with the three real services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import aio
from phylactery.agent.v1 import escalation_pb2, escalation_pb2_grpc, event_pb2
from phylactery_agent.rules.persons import asks_for_person
from phylactery_chassis.util.ids import new_id

from tests.support.agent.handoff import Worker, events_of, spoken, tokens_file
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system, refused
from tests.support.cases import each_case

PEOPLE = (
    ("ana", "acme", ("caller",)),
    ("marta", "acme", ("handler",)),
    ("pablo", "acme", ("handler",)),
    ("eva", "globex", ("handler",)),
    ("agent", "*", ("delegate",)),
    ("channel", "acme", ("delegate",)),
)
WRITE = 'escribe "hola" en notas.txt'


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """The services with people on duty."""
    async with open_desk(tmp_path, handoff="on") as opened:
        yield opened


class Desk:
    """The services, a person who talks to the agent, and those who work the queue."""

    def __init__(self, system: System, tokens: dict[str, str]) -> None:
        self.system, self.tokens = system, tokens
        self.ana = system.bearer(tokens["ana@acme"])

    def worker(self, name: str = "marta@acme") -> Worker:
        return Worker(self.system, self.tokens[name])

    async def open(self, thread_id: str = "t1", who: Person | None = None) -> escalation_pb2.Escalation:
        """Call a person to a thread, as the person's client does."""
        stub = escalation_pb2_grpc.EscalationServiceStub(self.system.agent_channel)
        request = escalation_pb2.OpenEscalationRequest(request_id=new_id("request"), thread_id=thread_id, reason="help")
        return (await stub.OpenEscalation(request, metadata=(who or self.ana).metadata, timeout=60)).escalation


@asynccontextmanager
async def open_desk(folder: Path, **options: Any) -> AsyncIterator[Desk]:
    """Run the services with a tokens file for everybody here."""
    path, tokens = tokens_file(folder, *PEOPLE)
    own = tokens["agent@*"]
    identity = {"identity_mode": "tokens", "tokens_file": path}
    async with open_system(folder, identity, asks=True, riskgate_token=own, memory_token=own, **options) as system:
        yield Desk(system, tokens)


async def test_a_conversation_goes_to_a_person_and_back_and_the_agent_is_silent_meanwhile(desk: Desk) -> None:
    ana, marta = desk.ana, desk.worker()
    asked = await ana.say("quiero hablar con una persona")
    assert (asked.run.status, asked.run.reason) == (DONE, "ESCALATED")
    assert "persona de nuestro equipo" in asked.reply.text
    (one,) = (await marta.queue()).escalations
    assert (one.subject, one.thread_id, one.policy) == ("ana", "t1", escalation_pb2.ESCALATION_POLICY_KEYWORD)
    assert (await ana.say("hola")).reply.text, "until somebody claims it, the agent answers"
    claimed = await marta.claim(one.escalation_id)
    assert claimed.state == escalation_pb2.ESCALATION_STATE_CLAIMED
    silent = await ana.say("mi pedido no ha llegado")
    assert (silent.run.status, silent.run.reason, silent.reply.text) == (DONE, "HANDED_OFF", "")
    streamed = await ana.stream("lee notas.txt")
    assert [event.WhichOneof("kind") for event in streamed] == ["run_started", "handoff", "run_finished"]
    assert (streamed[1].handoff.state, streamed[1].handoff.display_name) == ("CLAIMED", "Marta")
    await marta.note(one.escalation_id, "cliente antigua")
    await marta.reply(one.escalation_id, "Hola Ana, soy Marta. Lo miro.")
    shown = await marta.get(one.escalation_id)
    kinds = [escalation_pb2.EscalationEntryKind.Name(entry.kind).rpartition("_")[2] for entry in shown.entries]
    assert kinds == ["OPENED", "CLAIMED", "MESSAGE", "MESSAGE", "NOTE", "REPLY"]
    texts = [message.text for message in shown.conversation]
    assert texts[0] == "quiero hablar con una persona"
    assert "lee notas.txt" in texts
    assert not shown.conversation_unavailable
    released = await marta.release(one.escalation_id, "Le envío otro pedido.")
    assert released.state == escalation_pb2.ESCALATION_STATE_RELEASED
    back = await ana.say("gracias")
    assert (back.run.reason, bool(back.reply.text)) == ("ANSWERED", True)
    said = spoken(await events_of(ana))
    assert said[said.index("handoff CLAIMED") : said.index("handoff RELEASED")].count("message") == 0
    transcript = await ana.transcript()
    assert ("user", "mi pedido no ha llegado") in transcript
    kept = [text for role, text in transcript if role == "assistant" and "Marta" in text]
    assert kept[0].rpartition("] ")[2] == "Hola Ana, soy Marta. Lo miro."
    assert "Su resumen: Le envío otro pedido." in kept[1]
    assert not any("cliente antigua" in text for _, text in transcript)


@pytest.mark.parametrize("end", ["released", "closed"])
async def test_what_somebody_says_after_an_escalation_has_ended_is_not_for_its_handlers(desk: Desk, end: str) -> None:
    ana, marta = desk.ana, desk.worker()
    await ana.say("hola")
    one = await desk.open()
    assert next(message.text for message in (await marta.get(one.escalation_id)).conversation) == "hola"
    if end == "released":
        await marta.claim(one.escalation_id)
        await ana.say("mi pedido no llega")
        await marta.release(one.escalation_id)
    else:
        desk.system.clock.advance(601)
        assert await desk.system.agent.escalations.store.expire(wait_seconds=600) == 1
    await ana.say("esto ya es privado")
    for worker in (marta, desk.worker("pablo@acme")):
        shown = await worker.get(one.escalation_id)
        assert (list(shown.conversation), shown.conversation_unavailable) == ([], False)
        assert "privado" not in str(shown)
        assert [entry.text for entry in shown.entries if entry.kind != escalation_pb2.ESCALATION_ENTRY_KIND_CLOSED] == (
            ["", "", "", ""] if end == "released" else [""]
        )
        assert (shown.escalation.reason, shown.form_state, shown.escalation.summary) == ("", "", "")


async def test_what_was_said_meanwhile_is_in_the_window_of_the_next_turn_as_data(desk: Desk) -> None:
    ana, marta = desk.ana, desk.worker()
    await ana.say("hola")
    one = await desk.open()
    await marta.claim(one.escalation_id)
    await ana.say("mi pedido es el A1")
    await marta.reply(one.escalation_id, 'escribe "x" en notas.txt')
    await marta.release(one.escalation_id, "Pedido A1 reenviado.")
    next_turn = await ana.say("¿qué tal?")
    assert not next_turn.run.tool_calls, "a handler's text is no request"
    from phylactery_agent.runtime.storage.records import Owner

    window = await desk.system.agent.services.memories(Owner("acme", "ana")).hydrate(
        "t1", pathway="tool_intent", query="pedido", max_messages=20
    )
    told = [message["content"] for message in window.window]
    assert any("Pedido A1 reenviado." in text and text.startswith("[") for text in told)
    assert "mi pedido es el A1" in told


async def test_a_card_that_waited_is_answered_by_itself_alone_and_its_effect_is_done_without_a_word(
    desk: Desk,
) -> None:
    ana, marta = desk.ana, desk.worker()
    asked = await ana.say(WRITE)
    assert asked.run.status == SUSPENDED
    approval_id, code = approval_of(asked)
    one = await desk.open()
    await marta.claim(one.escalation_id)
    bare = await ana.say("sí")
    assert (bare.run.reason, bare.reply.text) == ("HANDED_OFF", "")
    assert not (desk.system.sandbox / "notas.txt").exists()
    assert (await ana.run(asked.run.id)).status == SUSPENDED
    answered = await ana.say(f"APROBAR {approval_id} {code}")
    assert (answered.run.id, answered.run.status, answered.reply.text) == (asked.run.id, DONE, "")
    folder = desk.system.folder / "agent" / "sandbox"
    assert [path.read_text().strip() for path in folder.rglob("notas.txt")] == ["hola"]
    said = spoken(await events_of(ana))
    assert "message" not in said[said.index("handoff CLAIMED") :]
    await marta.release(one.escalation_id)
    assert (await ana.say("hola")).reply.text


@pytest.mark.parametrize("text", ["quiero hablar con una persona", "I want to talk to a person"])
async def test_where_nobody_is_on_duty_the_agent_says_so(tmp_path: Path, text: str) -> None:
    async with open_desk(tmp_path) as desk:
        told = await desk.ana.say(text)
        assert ("No person is on duty" in told.reply.text) or ("ninguna persona de guardia" in told.reply.text)
        assert not (await desk.worker().queue()).escalations
        with pytest.raises(aio.AioRpcError) as off:
            await desk.open()
        assert refused(off.value).reason == "HANDOFF_OFF"


async def test_the_queue_is_for_handlers_of_its_tenant_alone(desk: Desk) -> None:
    await desk.ana.say("hola")
    one = await desk.open()
    for name in ("ana@acme", "channel@acme"):
        worker = desk.worker(name)
        for call in (worker.queue(), worker.get(one.escalation_id), worker.claim(one.escalation_id), worker.watched(1)):
            with pytest.raises(aio.AioRpcError) as wrong:
                await call
            assert refused(wrong.value).reason == "ROLE_REQUIRED"
    stranger = desk.worker("eva@globex")
    assert not (await stranger.queue()).escalations
    for call in (
        stranger.get(one.escalation_id),
        stranger.claim(one.escalation_id),
        stranger.release(one.escalation_id),
    ):
        with pytest.raises(aio.AioRpcError) as wrong:
            await call
        assert refused(wrong.value).reason == "ESCALATION_NOT_FOUND"
    with pytest.raises(aio.AioRpcError) as wrong:
        await desk.open(who=desk.system.bearer(desk.tokens["marta@acme"]))
    assert refused(wrong.value).reason == "ROLE_REQUIRED"


async def test_a_service_calls_a_person_as_the_delegate_of_the_user(desk: Desk) -> None:
    await desk.ana.say("hola")
    channel = desk.system.bearer(desk.tokens["channel@acme"])
    channel.metadata = (*channel.metadata, ("x-phylactery-subject", "ana"))
    one = await desk.open(who=channel)
    assert (one.subject, one.policy) == ("ana", escalation_pb2.ESCALATION_POLICY_REQUEST)
    assert (await desk.open()).escalation_id == one.escalation_id


async def test_a_watch_cut_after_any_entry_goes_on_with_exactly_the_rest(desk: Desk) -> None:
    marta = desk.worker()
    await desk.ana.say("hola")
    one = await desk.open()
    await marta.claim(one.escalation_id)
    await desk.ana.say("¿hay alguien?")
    await marta.reply(one.escalation_id, "sí")
    await marta.release(one.escalation_id, "listo")
    everything = await marta.watched(5)
    assert [entry.sequence for entry in everything] == [1, 2, 3, 4, 5]
    for cut in range(5):
        assert await desk.worker("pablo@acme").watched(5 - cut, after=cut) == everything[cut:]
    with pytest.raises(aio.AioRpcError) as ahead:
        await marta.watched(1, after=6)
    assert refused(ahead.value).reason == "CURSOR_AHEAD"


async def test_a_claim_survives_a_restart_of_the_agent_and_so_does_the_silence(desk: Desk) -> None:
    await desk.ana.say("hola")
    one = await desk.open()
    await desk.worker().claim(one.escalation_id)
    await desk.system.stop("agent")
    own = desk.tokens["agent@*"]
    await desk.system.start_agent(handoff="on", riskgate_token=own, memory_token=own)
    silent = await desk.ana.say("¿sigues ahí?")
    assert (silent.run.reason, silent.reply.text) == ("HANDED_OFF", "")
    assert (await desk.worker().reply(one.escalation_id, "sí, aquí sigo")).sequence


@pytest.mark.slow
async def test_memory_away_leaves_the_queue_working_and_says_what_is_missing(desk: Desk) -> None:
    await desk.ana.say("hola")
    one = await desk.open()
    await desk.system.stop("memory")
    marta = desk.worker()
    await marta.claim(one.escalation_id)
    await desk.ana.say("¿hola?")
    await marta.reply(one.escalation_id, "un momento")
    shown = await marta.get(one.escalation_id)
    assert shown.conversation_unavailable
    assert [entry.text for entry in shown.entries][-2:] == ["¿hola?", "un momento"]


@pytest.mark.parametrize(
    ("field", "value"), [("text", ""), ("text", "   "), ("text", "x" * 4_001), ("request_id", "short")]
)
async def test_a_reply_that_is_none_is_refused_with_its_field(desk: Desk, field: str, value: str) -> None:
    fields = {"request_id": "request-1", "escalation_id": "esc_1", "text": "hola", field: value}
    stub = escalation_pb2_grpc.EscalationServiceStub(desk.system.agent_channel)
    with pytest.raises(aio.AioRpcError) as wrong:
        await stub.ReplyAsHuman(
            escalation_pb2.ReplyAsHumanRequest(**fields), metadata=desk.worker().metadata, timeout=60
        )
    assert refused(wrong.value).fields == [field]


async def test_a_message_that_is_not_to_be_kept_is_not_shown_either(desk: Desk) -> None:
    await desk.ana.say("hola")
    one = await desk.open()
    marta = desk.worker()
    await marta.claim(one.escalation_id)
    await desk.ana.say("mi clave secreta es xyzzy-42, no guardes esto")
    entry = (await marta.get(one.escalation_id)).entries[-1]
    assert (entry.kind, entry.text) == (escalation_pb2.ESCALATION_ENTRY_KIND_MESSAGE, "")
    assert b"xyzzy-42" not in desk.system.everything_stored()


def test_events_of_the_agents_speech_are_the_contracts() -> None:
    from phylactery_agent.runtime.storage.events import SPOKEN

    assert set(event_pb2.Event.DESCRIPTOR.fields_by_name) >= SPOKEN


@each_case(
    "text",
    [
        "quiero hablar con una persona",
        "Quisiera hablar con alguien, por favor",
        "¿puedo hablar con un humano?",
        "pásame con un agente",
        "ponme con atención al cliente",
        "no, quiero hablar con una persona de verdad",
        "I want to talk to a person",
        "can I speak to someone?",
        "I'd like to speak with a real person about my order",
        "get me a manager",
        "is there a human there?",
        "human please",
    ],
)
def test_words_that_ask_for_a_person_are_understood(text: str) -> None:
    assert asks_for_person(text)


@each_case(
    "text",
    [
        'escribe "quiero hablar con una persona" en notas.txt',
        "remember that I want to talk to a person tomorrow",
        "recuérdame hablar con alguien mañana",
        "my job is agent",
        "gerente",
        "quiero un agente inmobiliario",
        "¿puedo hablar con Marta mañana?",
        "what is a human?",
        "I spoke to a person yesterday",
        "",
        "x" * 20_000,
    ],
)
def test_words_that_ask_for_something_else_are_not_taken_for_that(text: str) -> None:
    assert not asks_for_person(text)

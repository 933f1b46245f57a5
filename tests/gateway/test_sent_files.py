"""Files that the agent sends: fetched from it, uploaded, and shown once, or said to be in doubt."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest
from phylactery_gateway.channels.messages import File
from phylactery_gateway.channels.port import Action, SendError
from phylactery_gateway.loopback.graph_api import Fault, Phone, Sent

from tests.support.agent.documents import pdf
from tests.support.agent.files import shared_folder
from tests.support.agent.system import System, open_system
from tests.support.gateway.running import Desk, open_gateway

DOUBT = "No sé si «a.txt» te ha llegado"


@dataclass
class Sending:
    system: System
    desk: Desk
    sandbox: Path
    """What everybody sees as ``shared/box``: a phone's person is known only once they write."""

    def files_of(self, phone: Phone) -> list[Sent]:
        return [one for one in phone.inbox if one.media_id]

    async def texts(self, phone: Phone, count: int) -> list[str]:
        await self.desk.until(lambda: len([one for one in phone.inbox if not one.media_id]) >= count, "a text")
        return [one.text for one in phone.inbox if not one.media_id]


@pytest.fixture
async def sending(tmp_path: Path) -> AsyncIterator[Sending]:
    box = shared_folder(tmp_path, "local")
    async with (
        open_system(tmp_path, sandbox_shared=[box]) as system,
        open_gateway(tmp_path, system.target("agent")) as desk,
    ):
        await desk.lift(system.target("agent"))
        yield Sending(system, desk, box.path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "form", "mime"),
    [
        ("plan.pdf", pdf("the plan"), "document", "application/pdf"),
        ("list.csv", b"a,b\n1,2\n", "document", "text/plain"),
        ("cat.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 90_000, "image", "image/png"),
    ],
)
async def test_a_file_reaches_the_phone_once_as_it_is(
    sending: Sending, name: str, content: bytes, form: str, mime: str
) -> None:
    (sending.sandbox / name).write_bytes(content)
    phone = sending.desk.phone()
    await phone.say(f"envíame shared/box/{name}", times=3)
    await sending.texts(phone, 1)
    [file] = sending.files_of(phone)
    uploaded = sending.desk.graph.uploads[file.media_id]
    assert (file.body["type"], uploaded.mime, uploaded.content) == (form, mime, content)
    assert file.body[form].get("filename") == (name if form == "document" else None)
    assert len(sending.desk.graph.uploads) == 1


@pytest.mark.slow
async def test_telegram_gets_documents_and_pictures(sending: Sending) -> None:
    bot = sending.desk.bot
    (sending.sandbox / "a.txt").write_text("hola")
    (sending.sandbox / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 64)
    for place, name in enumerate(("a.txt", "cat.png"), 1):
        await bot.say(f"mándame shared/box/{name}")
        await sending.desk.until(lambda place=place: len(bot.sent) == place, "a reply")
    [text, picture] = bot.documents
    assert (text[0], text[1].name, text[1].content) == ("sendDocument", "a.txt", b"hola")
    assert (picture[0], picture[1].mime) == ("sendPhoto", "image/png")


@pytest.mark.slow
async def test_an_upload_whose_answer_is_lost_is_done_again_because_nobody_saw_it(sending: Sending) -> None:
    (sending.sandbox / "a.txt").write_text("hola")
    sending.desk.graph.upload_faults.append(Fault(502, delivered=True))
    phone = sending.desk.phone()
    await phone.say("envíame shared/box/a.txt")
    await sending.texts(phone, 1)
    assert len(sending.files_of(phone)) == 1


@pytest.mark.slow
async def test_a_message_whose_answer_is_lost_is_settled_by_its_status(sending: Sending) -> None:
    (sending.sandbox / "a.txt").write_text("hola")
    sending.desk.graph.faults.append(Fault(502, delivered=True))
    phone = sending.desk.phone()
    await phone.say("envíame shared/box/a.txt")
    [reply] = await sending.texts(phone, 1)
    assert len(sending.files_of(phone)) == 1
    assert DOUBT not in reply


@pytest.mark.slow
@pytest.mark.parametrize("delivered", [True, False], ids=["it arrived", "it did not"])
async def test_without_a_status_it_is_in_doubt_and_not_sent_again(sending: Sending, delivered: bool) -> None:
    graph = sending.desk.graph
    graph.statuses = False
    (sending.sandbox / "a.txt").write_text("hola")
    graph.faults.append(Fault(502, delivered=delivered))
    phone = sending.desk.phone()
    await phone.say("envíame shared/box/a.txt")
    await sending.desk.until_rows("SELECT * FROM outbox WHERE state = 'uncertain'", 1)
    sending.desk.clock.advance(120)
    texts = await sending.texts(phone, 2)
    assert sum(DOUBT in text for text in texts) == 1
    sending.desk.clock.advance(3_600)
    await phone.say("hola")
    await sending.texts(phone, 3)
    assert len(sending.files_of(phone)) == delivered
    assert len(await sending.desk.rows("SELECT * FROM outbox WHERE state = 'in_doubt'")) == 1


@pytest.mark.slow
async def test_on_telegram_a_lost_answer_is_in_doubt(sending: Sending) -> None:
    bot = sending.desk.bot
    (sending.sandbox / "a.txt").write_text("hola")
    bot.lose_answers = 1
    await bot.say("envíame shared/box/a.txt")
    await sending.desk.until_rows("SELECT * FROM outbox WHERE state = 'uncertain'", 1)
    sending.desk.clock.advance(120)
    await sending.desk.until(lambda: any(DOUBT in one["text"] for one in bot.sent), "the doubt")
    assert len(bot.documents) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault(429), Fault(400, 131056), Fault(400, 130429)], ids=["429", "131056", "130429"])
async def test_a_refused_message_is_sent_later_with_the_same_upload(sending: Sending, fault: Fault) -> None:
    (sending.sandbox / "a.txt").write_text("hola")
    sending.desk.graph.faults.append(fault)
    phone = sending.desk.phone()
    await phone.say("envíame shared/box/a.txt")
    await sending.desk.until_rows("SELECT * FROM outbox WHERE state = 'pending' AND tries = 1", 1)
    sending.desk.clock.advance(60)
    await sending.texts(phone, 1)
    assert (len(sending.files_of(phone)), len(sending.desk.graph.uploads)) == (1, 1)


@pytest.mark.slow
async def test_a_file_that_cannot_be_sent_is_told(sending: Sending) -> None:
    (sending.sandbox / "a.txt").write_text("hola")
    sending.desk.graph.faults.append(Fault(400, 131053))
    phone = sending.desk.phone()
    await phone.say("envíame shared/box/a.txt")
    texts = await sending.texts(phone, 2)
    assert any("No he podido enviarte «a.txt»" in text for text in texts)
    assert sending.files_of(phone) == []


@pytest.mark.slow
async def test_a_type_the_channel_does_not_take_is_told_before_anything_is_fetched(sending: Sending) -> None:
    (sending.sandbox / "a.gif").write_bytes(b"GIF89a" + b"\0" * 32)
    phone = sending.desk.phone()
    await phone.say("envíame shared/box/a.gif")
    texts = await sending.texts(phone, 2)
    assert any("No puedo enviarte «a.gif»" in text for text in texts)
    assert sending.desk.graph.uploads == {}


@pytest.mark.slow
async def test_a_file_that_changed_before_it_was_fetched_is_not_sent(tmp_path: Path) -> None:
    box = shared_folder(tmp_path, "local")
    async with (
        open_system(tmp_path, sandbox_shared=[box]) as system,
        open_gateway(tmp_path, system.target("agent")) as desk,
    ):
        await desk.lift(system.target("agent"))
        path = box.path / "a.txt"
        path.write_text("as permitted")
        phone = desk.phone()
        really = desk.gateway.agent.file

        async def changed(*given: object) -> bytes:
            path.write_text("something else")
            return await really(*given)  # type: ignore[arg-type]

        desk.gateway.agent.file = changed  # type: ignore[method-assign, assignment]
        await phone.say("envíame shared/box/a.txt")
        await desk.until(lambda: any("ha cambiado desde entonces" in one.text for one in phone.inbox), "the notice")
        assert not any(one.media_id for one in phone.inbox)
        assert desk.graph.uploads == {}


@pytest.mark.slow
async def test_a_file_waits_for_a_window_that_is_closed(sending: Sending) -> None:
    (sending.sandbox / "a.txt").write_text("hola")
    phone = sending.desk.phone()
    sending.desk.graph.faults.append(Fault(400, 131047))
    await phone.say("envíame shared/box/a.txt")
    await sending.desk.until_rows("SELECT * FROM outbox WHERE state = 'window'", 1)
    assert sending.files_of(phone) == []
    await phone.say("hola")
    await sending.desk.until(lambda: sending.files_of(phone), "the file")
    assert len(sending.files_of(phone)) == 1


@pytest.mark.slow
async def test_after_a_person_took_the_conversation_no_file_begins(sending: Sending) -> None:
    (sending.sandbox / "a.txt").write_text("hola")
    phone = sending.desk.phone()
    really = sending.desk.gateway.agent.file

    async def claimed(*given: object) -> bytes:
        data = await really(*given)  # type: ignore[arg-type]
        echo = {
            "id": "wamid.e",
            "timestamp": "1790000000",
            "type": "text",
            "to_user_id": phone.bsuid,
            "to": phone.phone,
        }
        graph = sending.desk.graph
        assert await graph.post(graph.change({"message_echoes": [echo]}, name="smb_message_echoes")) == 200
        return data

    sending.desk.gateway.agent.file = claimed  # type: ignore[method-assign, assignment]
    await phone.say("envíame shared/box/a.txt")
    await sending.desk.until_rows("SELECT * FROM outbox WHERE state = 'silenced'", 2)
    assert phone.inbox == []


@pytest.mark.slow
async def test_a_description_that_lies_is_noticed(sending: Sending) -> None:
    (sending.sandbox / "a.txt").write_text("hola")
    phone = sending.desk.phone()
    await phone.say("envíame shared/box/a.txt")
    await sending.texts(phone, 1)
    [conversation] = await sending.desk.rows("SELECT * FROM conversations")
    agent, subject = sending.desk.gateway.agent, f"wa:{conversation.user_id}"
    thread = await agent._client.acting_for(subject).get_thread(conversation.conversation_id)
    async with aclosing(agent._client.acting_for(subject).watch_thread(thread.id, reconnect=False)) as events:
        sent = await anext(event.detail async for event in events if event.kind == "file")
    right = File(sent.file_id, sent.name, sent.mime_type, sent.size_bytes, sent.sha256)
    assert await agent.file(subject, thread.id, right) == b"hola"
    for wrong in (right._replace(size=3), right._replace(sha256=hashlib.sha256(b"otra").hexdigest())):
        with pytest.raises(SendError) as failed:
            await agent.file(subject, thread.id, wrong)
        assert failed.value.action is Action.FAIL

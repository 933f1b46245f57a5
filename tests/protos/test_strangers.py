"""Two users of one tenant, over every RPC of the three services: with all of the other's ids nobody learns or changes
anything of theirs.

The RPCs come from the contracts. Each is called with every id that ana has, wherever a request has a field for one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from grpc import aio
from phylactery.agent.v1 import chat_pb2, escalation_pb2, escalation_pb2_grpc, form_pb2, form_pb2_grpc, run_pb2
from phylactery.memory.v1 import memory_pb2_grpc, output_pb2, output_pb2_grpc, user_memory_pb2
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_forms.definitions.reading import sample_folder

from tests.support.agent.documents import document, pdf
from tests.support.agent.system import DONE, Person, System, approval_of, open_system, runs_of
from tests.support.contracts.rpcs import ENDLESS, Rpc, every_rpc
from tests.support.contracts.valid_requests import valid_requests

pytestmark = pytest.mark.asyncio(loop_scope="module")
RPCS = {rpc.name: rpc for rpc in every_rpc()}
MARK = "zarzuela"
"""A word that only ana says."""
LISTENS_SECONDS, ENDS_SECONDS = 0.5, 60.0


@dataclass
class Tenant:
    """Ana, who has something of every kind, and eve of the same tenant, who has nothing."""

    system: System
    ana: Person
    eve: Person
    ids: dict[str, str]
    """Ana's ids, by the name of the fields that take them."""
    code: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tenant(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tenant]:
    folder: Path = tmp_path_factory.mktemp("tenant")
    async with open_system(folder, asks=True, forms_dir=sample_folder(), handoff="on") as system:
        ana, eve = system.person("ana"), system.person("eve")
        ids, code = await _filled(system, ana)
        yield Tenant(system, ana, eve, ids, code)


async def _yes(person: Person, text: str, thread_id: str) -> chat_pb2.SendMessageResponse:
    approval_id, code = approval_of(await person.say(text, thread_id))
    answer = await person.say(f"APROBAR {approval_id} {code}", thread_id)
    assert answer.run.status == DONE, answer.reply.text
    return answer


async def _filled(system: System, ana: Person) -> tuple[dict[str, str], str]:
    """Let ana have something of every kind, with MARK in it; return the ids of it all, and the code of her approval."""
    written = await _yes(ana, f'escribe "{MARK} uno" en {MARK}.txt', "files")
    (system.sandbox_of("ana") / "long.txt").write_text(f"{MARK}\n" * 4_000)
    await ana.say("lee long.txt", "files")
    await _yes(ana, f"recuérdame en 10 minutos {MARK}", "files")
    await ana.say(f"recuerda que mi perro se llama {MARK}", "memory")
    await ana.say("", "input", attachments=[document(pdf(f"Total: {MARK}"))])
    sent = await _yes(ana, f"envíame {MARK}.txt", "files")
    file_id = await _file_of(ana, "files")
    forms = form_pb2_grpc.FormServiceStub(system.agent_channel)
    started = await forms.StartForm(
        form_pb2.StartFormRequest(form="complaint", thread_id="form", language="es"), metadata=ana.metadata
    )
    await ana.say(f"AB-12345 {MARK}", "form")
    await ana.say(f"repite {MARK}", "handoff")
    desk = escalation_pb2_grpc.EscalationServiceStub(system.agent_channel)
    opened = await desk.OpenEscalation(
        escalation_pb2.OpenEscalationRequest(request_id="esc-00001", thread_id="handoff", reason=MARK),
        metadata=ana.metadata,
    )
    waiting = await ana.say(f'escribe "{MARK} dos" en dos.txt', "waiting")
    approval_id, code = approval_of(waiting)
    outputs = await output_pb2_grpc.OutputServiceStub(system.memory_channel).ListOutputs(
        output_pb2.ListOutputsRequest(), metadata=ana.metadata
    )
    memories = await memory_pb2_grpc.MemoryServiceStub(system.memory_channel).ListMemories(
        user_memory_pb2.ListMemoriesRequest(), metadata=ana.metadata
    )
    run = await ana.run(written.run.id)
    return {
        "thread_id": "files",
        "run_id": sent.run.id,
        "file_id": file_id,
        "approval_id": approval_id,
        "args_hash": waiting.pending_approval.args_hash,
        "pointer": outputs.outputs[0].pointer,
        "memory_id": memories.memories[0].memory_id,
        "supersedes": memories.memories[0].memory_id,
        "session_id": started.state.session_id,
        "escalation_id": opened.escalation.escalation_id,
        "tool_call_id": run.tool_calls[0].tool_call_id,
        "continues_task_id": "",
        "text": f"APROBAR {approval_id} {code}",
        "code": code,
        "form": "complaint",
        "subject": "ana",
    }, code


async def _file_of(person: Person, thread_id: str) -> str:
    async for part in person.chat.WatchThread(
        chat_pb2.WatchThreadRequest(thread_id=thread_id), metadata=person.metadata, timeout=ENDS_SECONDS
    ):
        if part.event.HasField("file"):
            return part.event.file.file_id
    raise AssertionError("no file was sent")


THREADS = ("files", "memory", "input", "form", "handoff", "waiting")


def with_ids(message: Message, ids: dict[str, str]) -> Message:
    """Return a request in which every field that ids name has that id, and no page token is given."""
    made = type(message)()
    made.CopyFrom(message)
    for field, value in made.ListFields():
        if field.message_type is not None:
            for one in value if field.is_repeated else (value,):
                if isinstance(one, Message) and one.DESCRIPTOR.file.package.startswith("phylactery"):
                    one.CopyFrom(with_ids(one, ids))
    for field in made.DESCRIPTOR.fields:
        if field.type != FieldDescriptor.TYPE_STRING or field.is_repeated:
            continue
        if field.name == "page_token":
            made.ClearField(field.name)
        elif ids.get(field.name) and (field.containing_oneof is None or made.HasField(field.name)):
            setattr(made, field.name, ids[field.name])
    return made


async def told(channel: aio.Channel, rpc: Rpc, bodies: Sequence[bytes], who: Person) -> bytes:
    """Return all bytes that a caller gets, errors and their details included."""
    sends = "stream" if rpc.descriptor.client_streaming else "unary"
    answers = "stream" if rpc.descriptor.server_streaming else "unary"
    stub = getattr(channel, f"{sends}_{answers}")(rpc.path)
    endless = rpc.name in ENDLESS or rpc.name.endswith(("TailEntries", "WatchEscalations"))
    running: Any = stub(
        iter(bodies) if sends == "stream" else bodies[0],
        metadata=who.metadata,
        timeout=LISTENS_SECONDS if endless else ENDS_SECONDS,
    )
    heard = b""
    try:
        if answers == "stream":
            async for part in running:
                heard += part
        else:
            heard += await running
    except aio.AioRpcError as error:
        heard += (error.details() or "").encode()
        heard += b"".join(value for _, value in error.trailing_metadata() or () if isinstance(value, bytes))
    return heard


async def _state_of(tenant: Tenant) -> dict[str, Any]:
    """Return everything that ana sees of her own."""
    system, ana = tenant.system, tenant.ana
    runs = await runs_of(system).ListRuns(run_pb2.ListRunsRequest(page_size=100), metadata=ana.metadata)
    memories = await memory_pb2_grpc.MemoryServiceStub(system.memory_channel).ListMemories(
        user_memory_pb2.ListMemoriesRequest(), metadata=ana.metadata
    )
    approval = await ana.approvals.GetApproval(
        approval_pb2.GetApprovalRequest(approval_id=tenant.ids["approval_id"]), metadata=ana.metadata
    )
    assert approval.approval.state == types_pb2.APPROVAL_STATE_PENDING
    form = await form_pb2_grpc.FormServiceStub(system.agent_channel).GetFormState(
        form_pb2.GetFormStateRequest(thread_id="form"), metadata=ana.metadata
    )
    return {
        "threads": {name: await ana.transcript(name) for name in THREADS if name not in {"form", "handoff"}},
        "runs": [(one.id, one.status) for one in runs.runs],
        "memories": [(one.memory_id, one.text, one.etag) for one in memories.memories],
        "form": form.state.SerializeToString(deterministic=True),
        "files": {one.name: one.read_text() for one in system.sandbox_of("ana").iterdir()},
        "outputs": len(await _outputs(tenant)),
    }


async def _outputs(tenant: Tenant) -> Sequence[Any]:
    stub = output_pb2_grpc.OutputServiceStub(tenant.system.memory_channel)
    return list((await stub.ListOutputs(output_pb2.ListOutputsRequest(), metadata=tenant.ana.metadata)).outputs)


def _requests(rpc: Rpc, ids: dict[str, str]) -> Iterable[list[bytes]]:
    """Yield the valid request with ana's ids, in each of her threads."""
    for thread in THREADS:
        made = [with_ids(one, ids | {"thread_id": thread}) for one in valid_requests()[rpc.name]]
        yield [one.SerializeToString() for one in made]
        if not any("thread_id" in one.DESCRIPTOR.fields_by_name for one in made):
            return


@pytest.mark.slow
async def test_no_rpc_tells_or_lets_change_what_is_another_users_of_the_tenant(tenant: Tenant) -> None:
    channels = {
        "agent": tenant.system.agent_channel,
        "riskgate": tenant.system.riskgate_channel,
        "memory": tenant.system.memory_channel,
    }
    before = await _state_of(tenant)
    for rpc in RPCS.values():
        for bodies in _requests(rpc, tenant.ids):
            heard = await told(channels[rpc.service], rpc, bodies, tenant.eve)
            assert MARK.encode() not in heard, f"{rpc.name} tells eve what ana said"
    assert await _state_of(tenant) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        "qué archivos hay",
        "lee {mark}.txt",
        "busca {mark}",
        "envíame {mark}.txt",
        "deshaz eso",
        "qué recordatorios tengo",
        "qué recuerdas de mí",
        "cómo se llama mi perro",
        "qué has hecho",
        "muéstrame más",
        "qué he dicho hasta ahora",
        "sí",
        "cancela el recordatorio",
        "lee la salida {pointer}",
    ],
)
async def test_no_wish_of_another_user_in_a_thread_of_the_same_name_reaches_what_is_anas(
    tenant: Tenant, asked: str
) -> None:
    before = await _state_of(tenant)
    text = asked.format(mark=MARK, pointer=tenant.ids["pointer"])
    for thread in ("files", "waiting", "form"):
        answer = await tenant.eve.say(text, thread)
        assert MARK not in answer.reply.text.replace(f"{MARK}.txt", "").replace(f"«{MARK}»", "")
    assert await _state_of(tenant) == before

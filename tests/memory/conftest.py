"""A real memory server over a real SQLite file, and stubs for a chosen user."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.memory.v1 import (
    memory_pb2,
    memory_pb2_grpc,
    output_pb2,
    output_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
    profile_pb2,
    user_memory_pb2,
)
from phylactery_chassis.db.database import Database
from phylactery_chassis.rpc.server import RunningServer, start
from phylactery_memory.app import HOUR_US, PACKAGE, assemble, embedder_of, objects_of
from phylactery_memory.housekeeping import Housekeeping
from phylactery_memory.keys.ring import UserKeys, load_master_keys
from phylactery_memory.keys.store import KeyStore
from phylactery_memory.memories.embeddings import LateVectors
from phylactery_memory.memories.pending_vectors import PendingVectors
from phylactery_memory.outputs.garbage import Garbage
from phylactery_memory.outputs.model import OutputRules
from phylactery_memory.outputs.objects import OutputObjects
from phylactery_memory.outputs.service import Outputs
from phylactery_memory.outputs.store import OutputStore
from phylactery_memory.settings import MemorySettings

from tests.support.clock import FakeClock
from tests.support.contracts.refusals import Refusal, refusal_of
from tests.support.memory_keeper import Keeper
from tests.support.servers import s3
from tests.support.servers.postgres import brief_database

CHUNK = 1024 * 1024


class User:
    """Calls as one subject of one tenant."""

    def __init__(self, channel: aio.Channel, subject: str, tenant: str) -> None:
        self.metadata = (("x-phylactery-subject", subject), ("x-phylactery-tenant", tenant))
        self.outputs = output_pb2_grpc.OutputServiceStub(channel)
        self.memory = memory_pb2_grpc.MemoryServiceStub(channel)
        self.privacy = privacy_pb2_grpc.PrivacyServiceStub(channel)

    def spec(self, **changes: Any) -> output_pb2.StoreOutputRequest:
        fields = {"thread_id": "t1", "run_id": "r1", "tool_call_id": "c1", "tool_name": "read_file", **changes}
        return output_pb2.StoreOutputRequest(spec=output_pb2.OutputSpec(**fields))

    async def stream(self, requests: Sequence[output_pb2.StoreOutputRequest]) -> output_pb2.StoreOutputResponse:
        return await self.outputs.StoreOutput(iter(requests), metadata=self.metadata, timeout=60)

    async def store(self, text: str | bytes, *, cut: int = CHUNK, **spec: Any) -> output_pb2.StoreOutputResponse:
        data = text.encode() if isinstance(text, str) else text
        chunks = [output_pb2.StoreOutputRequest(chunk=data[i : i + cut]) for i in range(0, len(data), cut)]
        return await self.stream([self.spec(**spec), *chunks])

    async def get(self, pointer: str) -> output_pb2.Output:
        response = await self.outputs.GetOutput(output_pb2.GetOutputRequest(pointer=pointer), metadata=self.metadata)
        return response.output

    async def read(self, pointer: str, offset: int = 0, limit: int = 0) -> output_pb2.ReadOutputResponse:
        request = output_pb2.ReadOutputRequest(pointer=pointer, offset=offset, limit=limit)
        return await self.outputs.ReadOutput(request, metadata=self.metadata)

    async def read_lines(
        self, pointer: str, first: int = 1, count: int = 0, *, skip_chars: int = 0, limit: int = 0
    ) -> output_pb2.ReadOutputResponse:
        lines = output_pb2.LineRange(first=first, count=count, skip_chars=skip_chars)
        request = output_pb2.ReadOutputRequest(pointer=pointer, lines=lines, limit=limit)
        return await self.outputs.ReadOutput(request, metadata=self.metadata)

    async def grep(self, pointer: str, pattern: str, **options: Any) -> output_pb2.SearchOutputResponse:
        request = output_pb2.SearchOutputRequest(pointer=pointer, pattern=pattern, **options)
        return await self.outputs.SearchOutput(request, metadata=self.metadata, timeout=60)

    async def rehydrate(self, pointer: str) -> output_pb2.RehydrateOutputResponse:
        request = output_pb2.RehydrateOutputRequest(pointer=pointer)
        return await self.outputs.RehydrateOutput(request, metadata=self.metadata)

    async def list_outputs(self, **options: Any) -> output_pb2.ListOutputsResponse:
        return await self.outputs.ListOutputs(output_pb2.ListOutputsRequest(**options), metadata=self.metadata)

    async def delete(self, pointer: str) -> bool:
        request = output_pb2.DeleteOutputRequest(pointer=pointer)
        return (await self.outputs.DeleteOutput(request, metadata=self.metadata)).deleted

    async def read_all(self, pointer: str) -> str:
        parts, offset, total = [], 0, 1
        while offset < total:
            part = await self.read(pointer, offset)
            parts.append(part.text)
            offset, total = part.next_offset, part.total_chars
        return "".join(parts)

    async def append(self, thread_id: str, *messages: memory_pb2.Message) -> memory_pb2.AppendMessagesResponse:
        request = memory_pb2.AppendMessagesRequest(thread_id=thread_id, messages=messages)
        return await self.memory.AppendMessages(request, metadata=self.metadata)

    async def delete_thread(self, thread_id: str, request_id: str = "request-1") -> memory_pb2.DeleteThreadResponse:
        request = memory_pb2.DeleteThreadRequest(thread_id=thread_id, request_id=request_id)
        return await self.memory.DeleteThread(request, metadata=self.metadata)

    async def list(self, thread_id: str, **options: Any) -> memory_pb2.ListMessagesResponse:
        request = memory_pb2.ListMessagesRequest(thread_id=thread_id, **options)
        return await self.memory.ListMessages(request, metadata=self.metadata)

    async def say(self, message_id: str, text: str, role: str = "ROLE_USER", thread: str = "t1") -> Any:
        """Put a message in the transcript and return the lineage that names it."""
        await self.append(thread, memory_pb2.Message(message_id=message_id, role=role, content=text))
        return user_memory_pb2.Lineage(message=user_memory_pb2.MessageRef(thread_id=thread, message_id=message_id))

    async def write(self, text: str, source: int = 1, **fields: Any) -> user_memory_pb2.WriteMemoryResponse:
        request = user_memory_pb2.WriteMemoryRequest(text=text, source=source, **fields)
        return await self.memory.WriteMemory(request, metadata=self.metadata)

    async def profile(self, *, superseded: int = 0) -> profile_pb2.Profile:
        request = profile_pb2.GetProfileRequest(max_superseded=superseded)
        return (await self.memory.GetProfile(request, metadata=self.metadata)).profile

    async def set(self, *, source: int = 1, remove: Sequence[str] = (), **options: Any) -> profile_pb2.Profile:
        """Set the profile's values; options besides lineage and etag are names and values, __ for a dot."""
        told = {name: options.pop(name) for name in ("lineage", "etag") if name in options}
        request = profile_pb2.SetProfileFieldsRequest(source=source, remove=remove, **told)
        for name, value in options.items():
            kind = {bool: "bool_value", str: "text_value"}.get(type(value), "number_value")
            request.values.add(name=name.replace("__", "."), **{kind: value})
        return (await self.memory.SetProfileFields(request, metadata=self.metadata)).profile

    async def context(self, pathway: str = "TOOL_INTENT", thread_id: str = "t1", **options: Any) -> Any:
        request = memory_pb2.BuildContextRequest(thread_id=thread_id, pathway=f"PATHWAY_{pathway}", **options)
        return await self.memory.BuildContext(request, metadata=self.metadata)

    async def erase(self, request_id: str = "erase-me-1", subject: str = "") -> privacy_pb2.Erasure:
        request = privacy_pb2.EraseUserRequest(subject=subject, request_id=request_id)
        return (await self.privacy.EraseUser(request, metadata=self.metadata)).erasure

    async def erasure(self, erasure_id: str) -> privacy_pb2.Erasure:
        request = privacy_pb2.GetErasureRequest(erasure_id=erasure_id)
        return (await self.privacy.GetErasure(request, metadata=self.metadata)).erasure

    async def export(self) -> list[dict[str, Any]]:
        call = self.privacy.ExportUser(privacy_pb2.ExportUserRequest(), metadata=self.metadata)
        return [json.loads(record.json) async for record in call]


@dataclass
class Memory:
    """The running service and what a fault test reaches into."""

    database: Database
    clock: FakeClock
    server: RunningServer
    channel: aio.Channel
    path: Path
    settings: MemorySettings
    objects: OutputObjects | None = None

    def user(self, subject: str = "ana", tenant: str = "acme") -> User:
        return User(self.channel, subject, tenant)

    @property
    def outputs(self) -> Outputs:
        """The use case over the same database and keys, for what no RPC says."""
        masters = load_master_keys(self.path.parent / "keys", None)
        keys = UserKeys(KeyStore(self.database), masters, self.clock)
        return Outputs(OutputStore(self.database, self.objects), keys, OutputRules(), self.clock)

    async def tidy(self) -> int:
        """Run one round of housekeeping and return how many outputs it removed."""
        masters = load_master_keys(self.path.parent / "keys", None)
        keys = KeyStore(self.database)
        garbage = Garbage(self.database, self.objects, grace_us=HOUR_US)
        embedder = embedder_of(self.settings)
        late = LateVectors(PendingVectors(self.database), embedder, self.clock)
        try:
            return await Housekeeping(garbage, keys, masters, late, clock=self.clock, every=1_000).tidy()
        finally:
            await embedder.close()

    def fill_disk(self) -> Callable[[], None]:
        """Leave room for two more pages of SQLite, and return what makes room again."""
        now = self.database.read_sync(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar_one())
        most = [now + 2]

        def limit(connection: sa.Connection) -> None:  # SQLite knows it for one connection alone, and any may write
            connection.exec_driver_sql(f"PRAGMA max_page_count = {most[0]}")

        sa.event.listen(self.database.engine, "begin", limit)
        return lambda: most.append(most.pop() + 1_000_000)

    def count(self, table: str) -> int:
        return self.database.read_sync(lambda c: c.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


async def open_memory(folder: Path, **options: Any) -> Memory:
    settings = MemorySettings(data_dir=folder, port=0, drain_seconds=0, **options)
    settings.prepare()
    database = Database(settings.url)
    database.migrate(PACKAGE)
    clock = FakeClock()
    server = await start(assemble(database, settings, clock), settings)
    channel = aio.insecure_channel(
        f"127.0.0.1:{server.port}",
        options=[("grpc.enable_retries", 0), ("grpc.max_send_message_length", -1)],
    )
    objects = objects_of(database, settings, clock)
    return Memory(database, clock, server, channel, folder / "memory.db", settings, objects)


@pytest.fixture
async def make_memory(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    opened: list[Memory] = []

    async def make(**options: Any) -> Memory:
        folder = options.pop("data_dir", tmp_path / f"m{len(opened)}")
        opened.append(await open_memory(folder, **options))
        return opened[-1]

    yield make
    for memory in opened:
        await memory.channel.close()
        await memory.server.stop()


@pytest.fixture
async def memory(make_memory: Callable[..., Any]) -> Memory:
    return await make_memory()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def kept(request: pytest.FixtureRequest, make_memory: Callable[..., Any]) -> Memory:
    """A memory service on either database."""
    if request.param == "sqlite":
        return await make_memory()
    url = brief_database(request.getfixturevalue("postgres_url"), "phylactery_memory")
    return await make_memory(database_url=url)


@pytest.fixture
def ana(memory: Memory) -> User:
    return memory.user("ana", "acme")


@pytest.fixture
def refused() -> Callable[..., Any]:
    """Await a call that must fail and return the refusal."""

    async def run(call: Any) -> Refusal:
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        return refusal_of(caught.value)

    return run


@pytest.fixture
def user_of() -> Callable[[aio.Channel], User]:
    """Make a user on a channel to any server."""
    return lambda channel: User(channel, "ana", "acme")


@pytest.fixture(scope="module")
def s3_server() -> Iterator[s3.S3]:
    with s3.server() as server:
        yield server


@pytest.fixture
def store(s3_server: s3.S3) -> s3.S3:
    """An S3-speaking server without an object in it."""
    for name in s3_server.names():
        s3_server.delete(name)
    return s3_server


@pytest.fixture
async def in_bucket(make_memory: Callable[..., Any], store: s3.S3, tmp_path: Path) -> Memory:
    """A memory service that keeps outputs in the bucket."""
    return await make_memory(output_ttl_days=0, **store.settings(tmp_path))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def kept_in_bucket(
    request: pytest.FixtureRequest, make_memory: Callable[..., Any], store: s3.S3, tmp_path: Path
) -> Memory:
    """The same over either database."""
    options = {"output_ttl_days": 0, **store.settings(tmp_path)}
    if request.param == "postgresql":
        url = brief_database(request.getfixturevalue("postgres_url"), "phylactery_memory")
        options["database_url"] = url
    return await make_memory(**options)


@pytest.fixture
def keeper(kept: Memory) -> Keeper:
    """Ana, as she keeps memories, on either database."""
    return Keeper(kept.user("ana", "acme"))

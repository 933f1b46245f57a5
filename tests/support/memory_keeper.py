"""Memories as one user writes, searches, changes and forgets them over the wire."""

from __future__ import annotations

import grpc
import sqlalchemy as sa
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from phylactery.memory.v1 import memory_pb2, user_memory_pb2

USER, ASSISTANT, TOOL, WEB, SYSTEM = range(1, 6)
FACT, PREFERENCE, EPISODE = range(1, 4)
SEMANTIC, PROFILE = 1, 2
UNTRUSTED, BY_ASSISTANT, BY_USER, BY_SYSTEM = range(1, 5)
INDEX_TABLES = ("memory_records", "memory_postings", "memory_vectors")
Code = grpc.StatusCode


def at(seconds):
    return Timestamp(seconds=1_700_000_000 + seconds)


class Keeper:
    """Calls the memory RPCs as one user."""

    def __init__(self, user):
        self.user, self.stub, self.metadata = user, user.memory, user.metadata

    async def write(self, text, source=USER, **fields):
        request = user_memory_pb2.WriteMemoryRequest(text=text, source=source, **fields)
        return await self.stub.WriteMemory(request, metadata=self.metadata)

    async def keep(self, text, source=USER, **fields):
        return (await self.write(text, source, keep=True, **fields)).memory

    async def say(self, message_id, text, role="ROLE_USER", thread="t1"):
        """Append a message to the transcript and return the lineage that names it."""
        message = memory_pb2.Message(message_id=message_id, role=role, content=text)
        await self.user.append(thread, message)
        return user_memory_pb2.Lineage(message=user_memory_pb2.MessageRef(thread_id=thread, message_id=message_id))

    async def tell(self, text, message_id, **fields):
        """Write a memory of what the person said in a message."""
        return await self.write(text, lineage=[await self.say(message_id, text)], **fields)

    async def search(self, query, **fields):
        request = user_memory_pb2.SearchMemoriesRequest(query=query, **fields)
        return (await self.stub.SearchMemories(request, metadata=self.metadata)).matches

    async def find(self, query, **fields):
        return [text_of(match.memory) for match in await self.search(query, **fields)]

    async def list(self, **fields):
        request = user_memory_pb2.ListMemoriesRequest(**fields)
        return await self.stub.ListMemories(request, metadata=self.metadata)

    async def update(self, memory, *paths, etag=None, **fields):
        request = user_memory_pb2.UpdateMemoryRequest(
            memory_id=memory.memory_id, etag=etag or memory.etag, update_mask=FieldMask(paths=paths), **fields
        )
        return (await self.stub.UpdateMemory(request, metadata=self.metadata)).memory

    async def forget(self, memory_id, etag="", **fields):
        request = user_memory_pb2.ForgetMemoryRequest(memory_id=memory_id, etag=etag, **fields)
        return await self.stub.ForgetMemory(request, metadata=self.metadata)


def text_of(memory):
    return memory.text or memory.untrusted_text


def reasons(written):
    return [user_memory_pb2.WriteReason.Name(r).removeprefix("WRITE_REASON_") for r in written.decision.reasons]


def index_of(kept):
    """Return the whole content of the index, for comparison of two states."""
    return {
        table: kept.database.read_sync(
            lambda c, table=table: sorted(
                tuple(bytes(v) if isinstance(v, memoryview) else v for v in row)
                for row in c.execute(sa.text(f"SELECT * FROM {table}"))
            )
        )
        for table in INDEX_TABLES
    }

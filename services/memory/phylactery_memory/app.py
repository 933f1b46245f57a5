"""Composition of the memory service: stores, domain services, servicers, health."""

from __future__ import annotations

import asyncio

from phylactery.memory.v1 import (
    memory_pb2,
    memory_pb2_grpc,
    output_pb2,
    output_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
)
from phylactery_chassis.db.database import Database
from phylactery_chassis.erasure.log import ErasureLog
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.server import Service, registration
from phylactery_chassis.util.clock import MICROSECONDS, Clock, SystemClock

from phylactery_memory.api.memory import MemoryServicer
from phylactery_memory.api.outputs import OutputServicer
from phylactery_memory.api.privacy import PrivacyServicer
from phylactery_memory.context.service import Contexts
from phylactery_memory.housekeeping import Housekeeping
from phylactery_memory.keys.ring import UserKeys, load_master_keys, warn_beside_data
from phylactery_memory.keys.store import KeyStore
from phylactery_memory.memories.embeddings import Embedder, HttpEmbeddings, LateVectors, NoEmbeddings
from phylactery_memory.memories.pending_vectors import PendingVectors
from phylactery_memory.memories.service import Memories
from phylactery_memory.memories.store import MemoryStore
from phylactery_memory.metrics import Metrics
from phylactery_memory.outputs.bucket import Bucket
from phylactery_memory.outputs.garbage import Garbage
from phylactery_memory.outputs.objects import OutputObjects, refuse_without_bucket
from phylactery_memory.outputs.service import Outputs
from phylactery_memory.outputs.store import OutputStore
from phylactery_memory.privacy.export import Exports
from phylactery_memory.privacy.model import Erasure
from phylactery_memory.privacy.service import Privacy
from phylactery_memory.privacy.store import PrivacyStore
from phylactery_memory.profile.service import Profiles
from phylactery_memory.profile.store import ProfileStore
from phylactery_memory.settings import MemorySettings
from phylactery_memory.transcript.service import Threads, Transcript
from phylactery_memory.transcript.store import MessageStore
from phylactery_memory.transcript.thread_store import ThreadStore

PACKAGE = "phylactery_memory"
HOUR_US = 3_600 * MICROSECONDS


async def build(settings: MemorySettings, *, clock: Clock | None = None) -> Service:
    """Open the database, migrate it on SQLite, and return the service ready to be served.

    Raise StartError if the database cannot be used or its schema does not match this version.
    """
    clock = clock or SystemClock()
    settings.prepare()
    database = Database(settings.url)
    try:
        await asyncio.to_thread(database.migrate_at_start, PACKAGE)
    except StartError:
        await asyncio.to_thread(database.close)
        raise
    try:
        return assemble(database, settings, clock)
    except StartError:
        await asyncio.to_thread(database.close)
        raise


def embedder_of(settings: MemorySettings) -> Embedder:
    """Return the configured embedder, or one that returns no vectors."""
    if not settings.embeddings_url:
        return NoEmbeddings()
    return HttpEmbeddings(
        settings.embeddings_url,
        settings.embeddings_model,
        settings.embeddings_key,
        settings.embeddings_timeout_seconds,
    )


def objects_of(database: Database, settings: MemorySettings, clock: Clock) -> OutputObjects | None:
    """Return the configured object store, None if there is none. Raise StartError."""
    return (
        None
        if settings.bucket is None
        else OutputObjects(database, Bucket(settings.bucket), clock, settings.object_grace_hours * HOUR_US)
    )


def assemble(database: Database, settings: MemorySettings, clock: Clock) -> Service:
    """Return the service over a migrated database."""
    masters = load_master_keys(settings.keys_dir, settings.master_key_file)
    keys = KeyStore(database)
    objects = objects_of(database, settings, clock)
    outputs = Outputs(OutputStore(database, objects), UserKeys(keys, masters, clock), settings.output_rules, clock)
    garbage = Garbage(database, objects, settings.object_grace_hours * HOUR_US)
    embedder = embedder_of(settings)
    late = LateVectors(PendingVectors(database), embedder, clock)
    housekeeping = Housekeeping(garbage, keys, masters, late, clock=clock, every=settings.gc_seconds)
    output_rpcs = OutputServicer(outputs)
    metrics = Metrics()
    transcript, profiles = (
        Transcript(MessageStore(database, settings.message_limits), clock),
        Profiles(ProfileStore(database), clock),
    )
    memories = Memories(
        MemoryStore(database), embedder, clock, limit=settings.max_memories, profile=profiles, metrics=metrics
    )
    contexts = Contexts(transcript, memories, profiles, metrics)
    threads = Threads(ThreadStore(database, objects), clock)
    memory = MemoryServicer(transcript, threads, memories, profiles, contexts)
    private = PrivacyStore(database, objects)
    log_path = settings.erasure_log or settings.data_dir / "erasures.jsonl"
    privacy = Privacy(private, ErasureLog(log_path, Erasure, "MEMORY_ERASURE_LOG"), clock)
    exports = Exports(private, transcript, memories, profiles, outputs)
    privacy_rpcs = PrivacyServicer(privacy, exports, settings.output_rules)

    async def find_objects() -> None:
        await (refuse_without_bucket(database) if objects is None else objects.start())

    async def replay_erasures() -> None:
        await privacy.replay()

    async def close() -> None:
        await housekeeping.stop()
        outputs.close()
        await embedder.close()
        await asyncio.to_thread(database.close)

    return Service(
        name=settings.service,
        registrations=[
            registration(
                output_pb2.DESCRIPTOR, "OutputService", output_pb2_grpc.add_OutputServiceServicer_to_server, output_rpcs
            ),
            registration(
                memory_pb2.DESCRIPTOR, "MemoryService", memory_pb2_grpc.add_MemoryServiceServicer_to_server, memory
            ),
            registration(
                privacy_pb2.DESCRIPTOR,
                "PrivacyService",
                privacy_pb2_grpc.add_PrivacyServiceServicer_to_server,
                privacy_rpcs,
            ),
        ],
        healthy=database.probe,
        on_start=[find_objects, replay_erasures, housekeeping.start],
        on_serving=[lambda: warn_beside_data(settings.keys_dir, settings.master_key_file)],
        on_stop=[close],
    )

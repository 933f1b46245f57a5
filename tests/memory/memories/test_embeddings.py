"""Vectors from a real HTTP endpoint on loopback: what they add, and that their failures fail no call."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from phylactery.memory.v1 import user_memory_pb2
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import StartError
from phylactery_chassis.settings import load
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_memory.memories.embeddings import HttpEmbeddings, LateVectors
from phylactery_memory.memories.pending_vectors import BATCH, BATCH_CHARACTERS, LONGEST_WAIT_US, PendingVectors
from phylactery_memory.retrieval.index import pack_records, unpack_records
from phylactery_memory.retrieval.vectors import cosines, pack_vectors, unit, without_vector
from phylactery_memory.settings import MemorySettings

from tests.support.processes.agents import wait_until
from tests.support.servers.postgres import brief_database

TOPICS = {"car": 0, "automobile": 0, "vehicle": 0, "sea": 1, "ocean": 1, "beach": 1, "bread": 2, "bakery": 2}
REFUSED = "unspeakable"
"""A word the endpoint refuses a whole request for."""


def meaning(text: str) -> list[float]:
    """A vector of what a text is about, with a little of everything."""
    vector = [0.1, 0.1, 0.1]
    for word in text.lower().split():
        if word in TOPICS:
            vector[TOPICS[word]] += 1
    return vector


class Endpoint:
    """An OpenAI-compatible /v1/embeddings that answers as told and notes what it was asked."""

    def __init__(self, port: int = 0) -> None:
        self.answer, self.asked, self.keys, self.hold = None, [], [], threading.Event()
        self.hold.set()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.asked.append((self.path, body))
                endpoint.keys.append(self.headers.get("authorization", ""))
                endpoint.hold.wait(20)
                rows = [{"index": i, "embedding": meaning(text)} for i, text in enumerate(body["input"])]
                status, data = endpoint.answer or (200, json.dumps({"data": rows[::-1]}).encode())
                if any(REFUSED in text for text in body["input"]):
                    status = 400
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def texts(self) -> list[str]:
        """Every text it was asked for, in order."""
        return [text for _, body in self.asked for text in body["input"]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1/embeddings"

    def stop(self) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    opened = Endpoint()
    yield opened
    opened.stop()


@pytest.fixture
def make_memory(make_memory):
    """Make a memory that waits for its endpoint as long as a busy machine takes; a test about waiting says how long."""

    async def make(**options):
        return await make_memory(**{"embeddings_timeout_seconds": 60, **options})

    return make


async def write(user, text):
    request = user_memory_pb2.WriteMemoryRequest(text=text, source=1, keep=True)
    return await user.memory.WriteMemory(request, metadata=user.metadata)


async def search(user, query):
    request = user_memory_pb2.SearchMemoriesRequest(query=query)
    return await user.memory.SearchMemories(request, metadata=user.metadata)


def texts(found):
    return [match.memory.text for match in found.matches]


async def test_meaning_finds_what_words_cannot_and_forgetting_takes_the_vector(make_memory, endpoint, tmp_path):
    key = tmp_path / "key"
    key.write_text("s3cret\n")
    memory = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny", embeddings_key_file=key)
    user = memory.user()
    for text in ("my automobile is blue", "the ocean at night", "bakery downtown"):
        written = await write(user, text)
        assert written.embedding_skipped == ""
    assert endpoint.asked[0] == ("/v1/embeddings", {"model": "tiny", "input": ["my automobile is blue"]})
    assert set(endpoint.keys) == {"Bearer s3cret"}
    found = await search(user, "vehicle")
    assert (texts(found)[0], found.embedding_skipped) == ("my automobile is blue", "")
    assert texts(await search(user, "night beach"))[0] == "the ocean at night"
    request = user_memory_pb2.ForgetMemoryRequest(memory_id=found.matches[0].memory.memory_id)
    await user.memory.ForgetMemory(request, metadata=user.metadata)
    assert "my automobile is blue" not in texts(await search(user, "vehicle"))
    assert memory.count("memory_vectors") == 1
    stored = memory.database.read_sync(lambda c: c.exec_driver_sql("SELECT body FROM memory_vectors").scalar_one())
    assert len(stored) == 2 * (8 + 3 * 4)


FAULTS = {
    "an error": (500, b"key s3cret is wrong", "answered HTTP 500"),
    "a redirect": (302, b"", "answered HTTP 302"),
    "no JSON": (200, b"<html>", "not a list of one vector"),
    "another shape": (200, b'{"data": {"a": 1}}', "not a list of one vector"),
    "too few": (200, b'{"data": []}', "not a list of one vector"),
    "an index twice": (
        200,
        b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]}',
        "one vector",
    ),
    "no numbers": (200, b'{"data": [{"index": 0, "embedding": ["x"]}]}', "not a list of one vector"),
    "not finite": (200, b'{"data": [{"index": 0, "embedding": [NaN, 1]}]}', "not a list of one vector"),
    "no direction": (200, b'{"data": [{"index": 0, "embedding": [0, 0]}]}', "not a list of one vector"),
    "too large": (200, b" " * (17 * 1024 * 1024), "not a list of one vector"),
    "deep": (200, b"[" * 200_000, "not a list of one vector"),
}


@pytest.mark.parametrize(("status", "body", "why"), FAULTS.values(), ids=FAULTS.keys())
async def test_whatever_the_endpoint_answers_words_still_find(make_memory, endpoint, status, body, why):
    memory = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny")
    user = memory.user()
    await write(user, "the ocean at night")
    endpoint.answer = (status, body)
    written = await write(user, "the ocean by day")
    assert (written.created, why in written.embedding_skipped) == (True, True), written
    found = await search(user, "ocean")
    assert sorted(texts(found)) == ["the ocean at night", "the ocean by day"]
    assert why in found.embedding_skipped
    assert "s3cret" not in found.embedding_skipped + written.embedding_skipped
    endpoint.answer = None
    assert len(texts(await search(user, "ocean"))) == 2


async def test_an_endpoint_that_does_not_answer_costs_its_timeout_and_no_more(make_memory, endpoint):
    memory = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny", embeddings_timeout_seconds=0.2)
    user = memory.user()
    endpoint.hold.clear()
    written = await write(user, "the ocean at night")
    assert (written.created, written.embedding_skipped) == (True, "the embeddings endpoint timed out")
    found = await search(user, "ocean")
    assert (texts(found), "timed out" in found.embedding_skipped) == (["the ocean at night"], True)


async def test_an_endpoint_that_is_gone_is_said_so(make_memory):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1/embeddings"
        memory = await make_memory(embeddings_url=url, embeddings_model="tiny")
        user = memory.user()
        written = await write(user, "the ocean at night")
        found = await search(user, "ocean")
    assert texts(found) == ["the ocean at night"]
    for why in (written.embedding_skipped, found.embedding_skipped):
        assert why.startswith("the embeddings endpoint cannot be reached (")


async def test_vectors_of_one_user_are_never_anothers(make_memory, endpoint):
    memory = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny")
    await write(memory.user("ana"), "my automobile is blue")
    for other in (memory.user("bob"), memory.user("ana", "globex")):
        assert texts(await search(other, "vehicle")) == []


@pytest.mark.slow
async def test_another_model_starts_without_the_vectors_of_the_one_before(make_memory, endpoint):
    first = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny")
    await write(first.user(), "my automobile is blue")
    folder = first.path.parent  # which holds the database and the master key that belongs to it
    second = await make_memory(data_dir=folder, embeddings_url=endpoint.url, embeddings_model="other")
    assert texts(await search(second.user(), "vehicle")) == []
    assert texts(await search(second.user(), "automobile")) == ["my automobile is blue"]
    assert texts(await search(first.user(), "vehicle")) == ["my automobile is blue"]


def test_vectors_of_another_width_take_no_part():
    row = (1, 1, 0, 0, 0, 9, 1, 1, 1, 1)
    records = unpack_records([pack_records([row, (2, *row[1:]), (70, *row[1:])])])
    wide, narrow = pack_vectors({1: unit([1, 0, 0])}), pack_vectors({70: unit([1, 1])})
    found = cosines(records, [wide, narrow], unit([1, 1]))
    assert np.isnan(found[:2]).all()
    assert found[2] == pytest.approx(1)
    mixed = wide + pack_vectors({2: unit([1, 1])})
    assert without_vector(mixed, 1) == pack_vectors({2: unit([1, 1])})


class Away:
    """An address where nothing listens, until somebody comes."""

    def __init__(self) -> None:
        self.taken = socket.socket()
        self.taken.bind(("127.0.0.1", 0))
        self.port = self.taken.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/embeddings"
        self.endpoint = None

    def comes_up(self) -> Endpoint:
        self.taken.close()
        self.endpoint = Endpoint(self.port)
        return self.endpoint

    def stop(self) -> None:
        self.taken.close()
        if self.endpoint is not None:
            self.endpoint.stop()


@pytest.fixture
def away() -> Iterator[Away]:
    opened = Away()
    yield opened
    opened.stop()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def lonely(request, make_memory, away):
    """A memory service, on either database, whose embeddings endpoint is not there yet."""
    options = {}
    if request.param == "postgresql":
        url = brief_database(request.getfixturevalue("postgres_url"), "phylactery_memory")
        options["database_url"] = url
    return await make_memory(embeddings_url=away.url, embeddings_model="tiny", **options)


async def later(memory, seconds=LONGEST_WAIT_US // MICROSECONDS):
    """A round of housekeeping, after the longest time a memory is put off."""
    memory.clock.advance(seconds)
    await memory.tidy()


async def test_what_is_written_while_the_endpoint_is_away_gets_its_vector_when_it_is_back(lonely, away):
    ana, bob = lonely.user("ana"), lonely.user("bob")
    for user, text in ((ana, "my automobile is blue"), (ana, "the ocean at night"), (bob, "bakery downtown")):
        assert "cannot be reached" in (await write(user, text)).embedding_skipped
    await later(lonely)
    assert (lonely.count("pending_vectors"), lonely.count("memory_vectors")) == (3, 0)
    endpoint = away.comes_up()
    assert texts(await search(ana, "vehicle")) == []
    endpoint.asked.clear()
    await later(lonely)
    assert [sorted(body["input"]) for _, body in endpoint.asked] == [
        ["bakery downtown", "my automobile is blue", "the ocean at night"]
    ]
    assert lonely.count("pending_vectors") == 0
    assert texts(await search(ana, "vehicle"))[0] == "my automobile is blue"
    assert texts(await search(bob, "bread")) == ["bakery downtown"]
    endpoint.asked.clear()
    await later(lonely)
    assert endpoint.asked == []


async def test_a_text_that_replaced_another_while_the_endpoint_was_away_is_embedded_too(lonely, away):
    ana = lonely.user("ana")
    written = await write(ana, "my automobile is blue")
    request = user_memory_pb2.UpdateMemoryRequest(
        memory_id=written.memory.memory_id, etag=written.memory.etag, text="my automobile is red"
    )
    request.update_mask.paths.append("text")
    await ana.memory.UpdateMemory(request, metadata=ana.metadata)
    away.comes_up()
    await later(lonely)
    assert texts(await search(ana, "vehicle"))[0] == "my automobile is red"


async def test_what_is_forgotten_or_erased_meanwhile_is_never_embedded(lonely, away):
    ana, bob = lonely.user("ana"), lonely.user("bob")
    forgotten = await write(ana, "my automobile is blue")
    await write(ana, "the ocean at night")
    await write(bob, "bakery downtown")
    request = user_memory_pb2.ForgetMemoryRequest(memory_id=forgotten.memory.memory_id)
    await ana.memory.ForgetMemory(request, metadata=ana.metadata)
    await bob.erase()
    assert lonely.count("pending_vectors") == 1
    endpoint = away.comes_up()
    await later(lonely)
    assert endpoint.texts == ["the ocean at night"]


async def test_what_is_erased_while_it_is_embedded_leaves_no_vector_for_whoever_comes_after(lonely):
    ana, bob = lonely.user("ana"), lonely.user("bob")
    await write(ana, "my automobile is blue")
    pending = PendingVectors(lonely.database)
    (claimed,) = await pending.claim(lonely.clock.now_us() + LONGEST_WAIT_US)
    await ana.erase()
    await write(bob, "bakery downtown")  # SQLite gives a new user the number of the one who is gone
    assert await pending.settle("tiny", [(claimed, unit([1, 0, 0]))]) == 0
    assert (lonely.count("memory_vectors"), lonely.count("pending_vectors")) == (0, 1)


@pytest.mark.slow
async def test_replicas_embed_each_memory_once(lonely, away):
    ana, bob = lonely.user("ana"), lonely.user("bob")
    wanted = [f"ocean number {number}" for number in range(100)]
    for number, text in enumerate(wanted):
        await write((ana, bob)[number % 2], text)
    endpoint = away.comes_up()
    lonely.clock.advance(3_600)
    embedders = [HttpEmbeddings(away.url, "tiny", "", 20) for _ in range(3)]
    databases = [Database(lonely.settings.url) for _ in embedders]  # one each, as processes have
    replicas = [
        LateVectors(PendingVectors(database), embedder, lonely.clock)
        for database, embedder in zip(databases, embedders, strict=True)
    ]
    embedded = await asyncio.gather(*(replica.embed_due() for replica in replicas))
    for database, embedder in zip(databases, embedders, strict=True):
        await embedder.close()
        await asyncio.to_thread(database.close)
    assert sum(embedded) == 100
    assert sorted(endpoint.texts) == sorted(wanted)
    assert max(len(body["input"]) for _, body in endpoint.asked) <= BATCH
    assert lonely.count("pending_vectors") == 0
    assert len(texts(await search(ana, "beach"))) == 10


async def test_a_failure_is_not_repeated_at_once_and_waits_ever_longer(make_memory, endpoint):
    memory = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny")
    endpoint.answer = (500, b"")
    await write(memory.user(), "the ocean at night")
    await later(memory)
    endpoint.asked.clear()
    waits = []
    for _ in range(3):
        due_us = memory.database.read_sync(lambda c: c.exec_driver_sql("SELECT due_us FROM pending_vectors").scalar())
        waits.append((due_us - memory.clock.now_us()) // MICROSECONDS)
        for seconds, asked in ((0, 0), (waits[-1] - 1, 0), (1, 1)):
            await later(memory, seconds)
            assert len(endpoint.asked) == asked, seconds
        endpoint.asked.clear()
    assert waits == [waits[0], 2 * waits[0], 4 * waits[0]]


@pytest.mark.slow
async def test_a_text_the_endpoint_refuses_holds_up_no_other(make_memory, endpoint):
    memory = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny")
    user = memory.user()
    endpoint.answer = (503, b"")
    for number in range(9):
        await write(user, f"ocean number {number}" if number != 4 else f"ocean {REFUSED}")
    endpoint.answer = None
    for _ in range(12):
        await later(memory)
    assert memory.count("pending_vectors") == 1
    endpoint.asked.clear()
    assert len(texts(await search(user, "beach"))) == 8
    await later(memory)
    assert endpoint.texts == ["beach", f"ocean {REFUSED}"]


async def test_long_texts_go_in_several_requests(make_memory, endpoint):
    memory = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny")
    endpoint.answer = (503, b"")
    for number in range(8):
        await write(memory.user(), f"ocean {number} " + "water " * 1_500)
    endpoint.answer = None
    endpoint.asked.clear()
    await later(memory)
    sizes = [sum(map(len, body["input"])) for _, body in endpoint.asked]
    assert len(sizes) == 3
    assert max(sizes) <= BATCH_CHARACTERS
    assert memory.count("pending_vectors") == 0


async def test_what_waits_gets_its_vector_from_the_model_that_is_set_then(make_memory, endpoint):
    first = await make_memory(embeddings_url=endpoint.url, embeddings_model="tiny")
    await write(first.user(), "the ocean at night")
    endpoint.answer = (503, b"")
    await write(first.user(), "my automobile is blue")
    endpoint.answer = None
    folder = first.path.parent
    await first.channel.close()
    await first.server.stop()
    second = await make_memory(data_dir=folder, embeddings_url=endpoint.url, embeddings_model="other")
    # The round that a service begins with.
    await asyncio.to_thread(wait_until, lambda: not second.count("pending_vectors"), "the vector")
    assert texts(await search(second.user(), "vehicle")) == ["my automobile is blue"]
    assert texts(await search(second.user(), "beach")) == ["my automobile is blue"]


async def test_where_no_endpoint_is_set_nothing_waits(memory):
    await write(memory.user(), "the ocean at night")
    await memory.tidy()
    assert memory.count("pending_vectors") == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"embeddings_url": "http://127.0.0.1:1/v1/embeddings"}, "MEMORY_EMBEDDINGS_MODEL"),
        ({"embeddings_url": "ftp://host/x", "embeddings_model": "m"}, "MEMORY_EMBEDDINGS_URL"),
        ({"embeddings_key_file": "/nowhere/key"}, "MEMORY_EMBEDDINGS_KEY_FILE"),
        ({"embeddings_timeout_seconds": 0}, "MEMORY_EMBEDDINGS_TIMEOUT_SECONDS"),
    ],
)
def test_a_wrong_setting_names_its_variable(changes, named):
    with pytest.raises(StartError, match=named):
        load(MemorySettings, **changes)

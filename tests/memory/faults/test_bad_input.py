"""Bad input for every RPC: a clear answer, never INTERNAL or UNKNOWN."""

from __future__ import annotations

import base64
import random

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery.memory.v1 import memory_pb2, output_pb2, user_memory_pb2
from phylactery_chassis.auth.identity import token_hash

BAD_IDS = ["", "x" * 129, "con espacio", "../etc", "a\0b", "ñ", "a\nb"]
METHODS = {
    "/phylactery.memory.v1.OutputService/StoreOutput": True,
    "/phylactery.memory.v1.OutputService/GetOutput": False,
    "/phylactery.memory.v1.OutputService/ReadOutput": False,
    "/phylactery.memory.v1.OutputService/SearchOutput": False,
    "/phylactery.memory.v1.OutputService/RehydrateOutput": False,
    "/phylactery.memory.v1.OutputService/ListOutputs": False,
    "/phylactery.memory.v1.OutputService/DeleteOutput": False,
    "/phylactery.memory.v1.MemoryService/AppendMessages": False,
    "/phylactery.memory.v1.MemoryService/ListMessages": False,
    "/phylactery.memory.v1.MemoryService/WriteMemory": False,
    "/phylactery.memory.v1.MemoryService/SearchMemories": False,
    "/phylactery.memory.v1.MemoryService/ListMemories": False,
    "/phylactery.memory.v1.MemoryService/UpdateMemory": False,
    "/phylactery.memory.v1.MemoryService/ForgetMemory": False,
}


async def code_of(call) -> grpc.StatusCode:
    try:
        await call
    except aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def say(**changes) -> memory_pb2.Message:
    return memory_pb2.Message(**{"message_id": "m1", "role": memory_pb2.ROLE_USER, "content": "hola", **changes})


@pytest.mark.parametrize("field", ["thread_id", "run_id", "tool_call_id", "tool_name"])
@pytest.mark.parametrize("value", BAD_IDS)
async def test_a_spec_with_a_bad_field_names_it(ana, refused, field, value):
    refusal = await refused(ana.stream([ana.spec(**{field: value})]))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert refusal.fields == [field]


@pytest.mark.parametrize("value", BAD_IDS)
async def test_a_bad_pointer_is_refused(ana, refused, value):
    calls = (ana.get(value), ana.read(value), ana.grep(value, "x"), ana.rehydrate(value), ana.delete(value))
    for call in calls:
        refusal = await refused(call)
        assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["pointer"])


@pytest.mark.parametrize(
    ("offset", "limit", "field"),
    [(-1, 0, "offset"), (-(2**63), 0, "offset"), (0, -1, "limit"), (0, 10_001, "limit"), (0, 2**31 - 1, "limit")],
)
async def test_a_range_outside_its_bounds_is_refused(ana, refused, offset, limit, field):
    pointer = (await ana.store("x" * 10_001)).output.pointer
    refusal = await refused(ana.read(pointer, offset, limit))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ({"first": 0}, "lines.first"),
        ({"first": -1}, "lines.first"),
        ({"first": 2**63 - 1}, "lines.first"),
        ({"first": 1, "count": -1}, "lines.count"),
        ({"first": 1, "count": 10_001}, "lines.count"),
        ({"first": 1, "skip_chars": -1}, "lines.skip_chars"),
        ({"first": 1, "skip_chars": 2**63 - 1}, "lines.skip_chars"),
    ],
)
async def test_lines_outside_their_bounds_are_refused(ana, refused, lines, field):
    pointer = (await ana.store("x\n" * 10_001)).output.pointer
    refusal = await refused(ana.read_lines(pointer, **lines))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_lines_and_an_offset_at_once_are_refused(ana, refused):
    request = output_pb2.ReadOutputRequest(pointer="out_a", offset=1, lines=output_pb2.LineRange(first=1))
    refusal = await refused(ana.outputs.ReadOutput(request, metadata=ana.metadata))
    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "lines and offset" in refusal.message


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"pattern": ""}, "pattern"),
        ({"pattern": "x" * 1_001}, "pattern"),
        ({"pattern": "("}, "pattern"),
        ({"pattern": "(?=x)"}, "pattern"),
        ({"pattern": r"(a)\1"}, "pattern"),
        ({"pattern": "(a{1000}){1000}"}, "pattern"),
        ({"pattern": "x", "context_lines": -1}, "context_lines"),
        ({"pattern": "x", "context_lines": 11}, "context_lines"),
        ({"pattern": "x", "offset": -1}, "offset"),
        ({"pattern": "x", "max_matches": -1}, "max_matches"),
        ({"pattern": "x", "max_matches": 101}, "max_matches"),
    ],
)
async def test_a_search_outside_its_bounds_is_refused(ana, refused, options, field):
    pointer = (await ana.store("x\n" * 10_001)).output.pointer
    refusal = await refused(ana.grep(pointer, **options))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"thread_id": "a b"}, "thread_id"),
        ({"run_id": "x" * 129}, "run_id"),
        ({"page_size": -1}, "page_size"),
        ({"page_size": 201}, "page_size"),
        ({"page_token": "no token"}, "page_token"),
        ({"page_token": "WzFd"}, "page_token"),
    ],
)
async def test_a_list_of_outputs_outside_its_bounds_is_refused(ana, refused, options, field):
    refusal = await refused(ana.list_outputs(**options))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize(
    ("ttl", "field"),
    [
        (Duration(seconds=59), "ttl.seconds"),
        (Duration(seconds=-60), "ttl.seconds"),
        (Duration(seconds=3_650 * 86_400 + 1), "ttl.seconds"),
        (Duration(seconds=60, nanos=-1), "ttl.nanos"),
    ],
)
async def test_a_ttl_outside_its_bounds_is_refused(ana, refused, ttl, field):
    refusal = await refused(ana.store("x", ttl=ttl))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_a_chunk_over_one_mebibyte_is_refused(memory, ana, refused):
    refusal = await refused(ana.store("x" * (1024 * 1024 + 1), cut=1024 * 1024 + 1))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["chunk"])
    assert memory.count("outputs") == 0


@pytest.mark.parametrize("value", BAD_IDS)
async def test_a_bad_thread_id_is_refused(ana, refused, value):
    for call in (ana.append(value, say()), ana.list(value)):
        refusal = await refused(call)
        assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["thread_id"])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"message_id": ""}, "message_id"),
        ({"message_id": "x" * 129}, "message_id"),
        ({"message_id": "a b"}, "message_id"),
        ({"role": memory_pb2.ROLE_UNSPECIFIED}, "role"),
        ({"role": 99}, "role"),
        ({"content": "x" * 100_001}, "content"),
        ({"run_id": "x" * 129}, "run_id"),
        ({"create_time": Timestamp(seconds=2**62)}, "create_time.seconds"),
        ({"create_time": Timestamp(seconds=-(2**62))}, "create_time.seconds"),
        ({"create_time": Timestamp(nanos=-1)}, "create_time.nanos"),
    ],
)
async def test_a_message_with_a_bad_field_names_it_and_adds_nothing(ana, refused, changes, field):
    refusal = await refused(ana.append("t1", say(message_id="m0"), say(**changes)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert refusal.fields == [f"messages.1.{field}"]
    assert list((await ana.list("t1")).messages) == []


async def test_content_at_the_limit_is_counted_in_code_points(ana):
    assert (await ana.append("t1", say(content="🜛" * 100_000))).appended == 1


@pytest.mark.parametrize("count", [0, 101])
async def test_one_to_a_hundred_messages_at_once(ana, refused, count):
    refusal = await refused(ana.append("t1", *(say(message_id=f"m{i}") for i in range(count))))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["messages"])


async def test_the_first_and_last_moment_of_a_timestamp_are_kept(ana):
    first, last = Timestamp(seconds=-62_135_596_800), Timestamp(seconds=253_402_300_799, nanos=999_999_000)
    await ana.append("t1", say(message_id="a", create_time=first), say(message_id="b", create_time=last))
    assert [m.create_time for m in (await ana.list("t1")).messages] == [last, first]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"page_size": -1}, "page_size"),
        ({"page_size": 501}, "page_size"),
        ({"max_characters": -1}, "max_characters"),
        ({"max_characters": 1_000_001}, "max_characters"),
        ({"page_token": "x" * 1_001}, "page_token"),
        ({"page_token": "no token"}, "page_token"),
        ({"page_token": "WyJhIl0"}, "page_token"),
        ({"page_token": "W10"}, "page_token"),
        ({"page_token": "ñ"}, "page_token"),
    ],
)
async def test_a_page_outside_its_bounds_is_refused(ana, refused, options, field):
    refusal = await refused(ana.list("t1", **options))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize(
    "position", ["WzFlNDAwXQ", "Wzk5OTk5OTk5OTk5OTk5OTk5OTk5OTldDQ", "Wy05OTk5OTk5OTk5OTk5OTk5OTk5OV0"]
)
async def test_a_forged_page_token_breaks_nothing(ana, position):
    await ana.append("t1", say())
    token = base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")
    code = await code_of(ana.list("t1", page_token=token))
    assert code in {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}


@pytest.mark.parametrize(("method", "streaming"), METHODS.items())
async def test_bytes_that_are_no_message_are_invalid(memory, refused, method, streaming):
    bad_utf8 = b"\x0a\x02\xc3\x28"  # field 1 as a string or message that is neither
    for body in (b"\xff\xff\xff", bad_utf8):
        kind = memory.channel.stream_unary if streaming else memory.channel.unary_unary
        call = kind(method, request_serializer=bytes, response_deserializer=bytes)
        refusal = await refused(call(iter([body]) if streaming else body, timeout=60))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")


async def test_a_message_of_ten_megabytes_is_refused_without_harm(ana, refused):
    refusal = await refused(ana.list("x" * 10_000_000))
    assert refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await ana.append("t1", say())).appended == 1


async def test_random_and_mutated_messages_never_end_internal_or_unknown(memory, ana):
    dice = random.Random(7)
    seeds = [
        ana.spec().SerializeToString(),
        output_pb2.ReadOutputRequest(pointer="out_a", offset=5, limit=5).SerializeToString(),
        output_pb2.ReadOutputRequest(pointer="out_a", lines=output_pb2.LineRange(first=2)).SerializeToString(),
        output_pb2.SearchOutputRequest(pointer="out_a", pattern="(a|b)+$", context_lines=2).SerializeToString(),
        output_pb2.ListOutputsRequest(thread_id="t", run_id="r", page_size=5).SerializeToString(),
        memory_pb2.AppendMessagesRequest(thread_id="t", messages=[say()]).SerializeToString(),
        memory_pb2.ListMessagesRequest(thread_id="t", page_size=5, page_token="WzFd").SerializeToString(),
        user_memory_pb2.WriteMemoryRequest(text="vivo en Lima", source=1, keep=True, sequence=3).SerializeToString(),
        user_memory_pb2.SearchMemoriesRequest(query="Lima", limit=5, kind=1).SerializeToString(),
        user_memory_pb2.UpdateMemoryRequest(memory_id="mem_a", etag="r1", text="x", importance=1).SerializeToString(),
    ]
    seen = set()
    for _ in range(400):
        body = bytearray(dice.choice(seeds) if dice.random() < 0.8 else dice.randbytes(dice.randrange(40)))
        for _ in range(dice.randrange(4)):
            if body:
                body[dice.randrange(len(body))] = dice.randrange(256)
        method, streaming = dice.choice(list(METHODS.items()))
        kind = memory.channel.stream_unary if streaming else memory.channel.unary_unary
        call = kind(method, request_serializer=bytes, response_deserializer=bytes)
        request = iter([bytes(body)] * dice.randrange(3)) if streaming else bytes(body)
        seen.add(await code_of(call(request, timeout=60)))
    assert seen <= {
        grpc.StatusCode.OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
    }
    assert grpc.StatusCode.INVALID_ARGUMENT in seen


async def test_without_a_known_token_nothing_is_answered(make_memory, refused, tmp_path):
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(
        "tokens:\n"
        f"  - {{hash: '{token_hash('t-auditor')}', subject: eva, tenant: acme, roles: [auditor]}}\n"
        f"  - {{hash: '{token_hash('t-caller')}', subject: ana, tenant: acme, roles: [caller]}}\n"
    )
    memory = await make_memory(identity_mode="tokens", tokens_file=tokens)
    user = memory.user()
    calls = (
        lambda: user.store("x"),
        lambda: user.get("out_a"),
        lambda: user.append("t1", say()),
        lambda: user.list("t1"),
    )
    for bearer, code, reason in (
        ("nobody", grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"),
        ("t-auditor", grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED"),
    ):
        user.metadata = (("authorization", f"Bearer {bearer}"),)
        for call in calls:
            refusal = await refused(call())
            assert (refusal.code, refusal.reason) == (code, reason)
    user.metadata = (("authorization", "Bearer t-caller"),)
    assert (await user.append("t1", say())).appended == 1


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(token=st.text(max_size=40))
async def test_no_page_token_at_all_breaks_the_list(ana, token):
    assert await code_of(ana.list("t1", page_token=token)) in {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}

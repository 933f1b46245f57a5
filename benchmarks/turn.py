"""A chat turn through the three services, as a client sees it."""

from __future__ import annotations

from grpc import aio
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc
from phylactery.riskgate.v1 import key_pb2, key_pb2_grpc

from benchmarks.measure import emit, sample
from benchmarks.stack import services

_TURNS = 60


async def run() -> None:
    """Prints the suite's lines."""
    with services() as stack:
        stack.sandbox.mkdir(parents=True, exist_ok=True)
        (stack.sandbox / "note.txt").write_text("a short note")
        async with (
            aio.insecure_channel(stack.target("agent")) as agent,
            aio.insecure_channel(stack.target("riskgate")) as riskgate,
        ):
            keys, chat = key_pb2_grpc.KeyServiceStub(riskgate), chat_pb2_grpc.ChatServiceStub(agent)
            floor = await sample(lambda _: keys.ListKeys(key_pb2.ListKeysRequest()), calls=300)

            async def say(text: str, number: int) -> object:
                return await chat.SendMessage(
                    chat_pb2.SendMessageRequest(
                        request_id=f"bench-{abs(hash(text))}-{number}", thread_id=f"t{number % 7}", text=text
                    )
                )

            simple = await sample(lambda i: say("hello", i), calls=_TURNS, warmup=5)
            tool = await sample(lambda i: say("read note.txt", i), calls=_TURNS, warmup=5)
            emit("text_simple_p50_ms", simple.percentile_ms(50), "ms", floor_rpc_ms=floor.percentile_ms(50))
            emit("text_simple_p95_ms", simple.percentile_ms(95), "ms")
            emit("secured_turn_p50_ms", tool.percentile_ms(50), "ms", floor_rpc_ms=floor.percentile_ms(50))
            emit("secured_turn_p95_ms", tool.percentile_ms(95), "ms")

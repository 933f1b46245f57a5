"""The interceptor records a call after its response was passed to gRPC, with the time the call itself ended."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from phylactery_chassis.auth.identity import LoopbackAuthenticator
from phylactery_chassis.errors import NotFound
from phylactery_chassis.rpc.interceptor import ServerInterceptor
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.spans import LightProvider

METHOD = "phylactery.memory.v1.MemoryService/ListMessages"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    provider, kept = LightProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return kept


class Call:
    """gRPC's side of one call: what was told of it by the time its status was given."""

    def __init__(self, ended: InMemorySpanExporter) -> None:
        self._ended = ended
        self.told_before: tuple[ReadableSpan, ...] | None = None

    def time_remaining(self) -> None:
        return None

    async def abort_with_status(self, _status: grpc.Status) -> None:
        self.told_before = self._ended.get_finished_spans()


async def serve(inner: Any, call: Call) -> Any:
    interceptor = ServerInterceptor("memory", LoopbackAuthenticator())

    async def found(_details: object) -> Any:
        return grpc.unary_unary_rpc_method_handler(inner)

    handler = await interceptor.intercept_service(found, SimpleNamespace(method=f"/{METHOD}", invocation_metadata=()))
    assert handler is not None
    return await handler.unary_unary(object(), call)


async def test_an_answer_waits_for_nothing_that_is_told_of_its_call(ended: InMemorySpanExporter):
    async def inner(_request: object, _context: object) -> str:
        return "answer"

    assert await serve(inner, Call(ended)) == "answer"
    answered_ns = time.time_ns()
    assert not ended.get_finished_spans()
    await asyncio.sleep(0)
    [span] = ended.get_finished_spans()
    assert span.name == METHOD
    assert span.attributes is not None
    assert span.attributes[semconv.RPC_STATUS] == "OK"
    assert span.end_time is not None
    assert span.end_time <= answered_ns


async def test_a_refusal_waits_for_nothing_either_and_is_told_with_its_reason(ended: InMemorySpanExporter):
    async def inner(_request: object, _context: object) -> None:
        raise NotFound("MESSAGE_NOT_FOUND", "there is none")

    call = Call(ended)
    await serve(inner, call)
    assert call.told_before == ()
    await asyncio.sleep(0)
    [span] = ended.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes[semconv.RPC_STATUS] == "NOT_FOUND"
    assert span.attributes[semconv.ERROR_TYPE] == "MESSAGE_NOT_FOUND"


async def test_a_call_that_was_given_up_is_told_at_once(ended: InMemorySpanExporter):
    async def inner(_request: object, _context: object) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await serve(inner, Call(ended))
    [span] = ended.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes[semconv.RPC_STATUS] == "CANCELLED"

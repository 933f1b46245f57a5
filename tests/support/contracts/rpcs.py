"""All RPCs, found in the generated code, and all invalid variants of their requests."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc import aio
from grpc_status import rpc_status

GENERATED = Path(__file__).resolve().parents[3] / "protos" / "gen"
MARK = "mark7f3a"
"""In every spoilt text, so that a test can see whether a response repeats its input."""
_PLACE = "Qq7placeQq7"
"""Placeholder for text that is made invalid UTF-8 on the wire, which no protobuf library would write."""
_STRUCT = "google.protobuf.Struct"
_AT_ONCE = 16
_HANGS_SECONDS = 60.0
ENDLESS = {"ApprovalService/WatchApprovals", "ChatService/WatchThread"}
"""Streams that do not end by themselves."""
_LISTENS_SECONDS = 0.5

TEXTS = {
    "over-long": MARK * 40,
    "far over-long": MARK * 30_000,
    "control characters": f"{MARK}\x07\r\n\x1b[31m",
    "NUL": f"{MARK}\x00",
    "path": f"../{MARK}/../../etc/passwd",
    "SQL": f"{MARK}'; DROP TABLE approvals; --",
    "bidi and astral": f"{MARK}\u202e\u2066\U0001f702",
    "not JSON": f"{{{MARK}",
    "doubled keys": f'{{"text":"{MARK}","text":"{MARK}"}}',
    "an entity": f'{{"text":{{"__entity":{{"type":"User","id":"{MARK}"}}}}}}',
    "deep": "[" * 5_000 + "]" * 5_000,
    "deep objects": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "a lone surrogate": '{"text":"\\ud800"}',
    "numbers past all bounds": '{"text":1e999,"b":-1e-999,"c":' + "9" * 5_000 + "}",
    "no number": '{"text":NaN,"b":Infinity}',
}
_SIGNED = (-1, -(2**31), 2**31 - 1)
_NUMBERS: dict[int, Sequence[int | float]] = {
    FieldDescriptor.CPPTYPE_INT32: _SIGNED,
    FieldDescriptor.CPPTYPE_INT64: (*_SIGNED, -(2**63), 2**63 - 1, 2**53),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_DOUBLE: (float("nan"), float("inf"), float("-inf"), 1e308, 5e-324, -0.0),
    FieldDescriptor.CPPTYPE_FLOAT: (float("nan"), float("inf"), float("-inf")),
    FieldDescriptor.CPPTYPE_ENUM: (0, -1, 99, 2**31 - 1),
    FieldDescriptor.CPPTYPE_BOOL: (False, True),
}
_NO_UTF8 = {"a cut sequence": b"\xc3", "a surrogate": b"\xed\xa0\x80", "no UTF-8": b"\xff\xfe"}
_BYTES = (b"", b"\x00", b"\xff\xfe", b"x" * (2 * 1024 * 1024))


@dataclass(frozen=True)
class Rpc:
    """An RPC; service is agent, memory or riskgate."""

    service: str
    path: str
    descriptor: MethodDescriptor

    @property
    def name(self) -> str:
        """Return e.g. ChatService/SendMessage, or agent.PrivacyService/EraseUser where two services share a name."""
        own = self.path.rsplit(".", 1)[-1]
        return f"{self.service}.{own}" if own.startswith("PrivacyService/") else own

    @property
    def request(self) -> type[Message]:
        """Return the class of its request."""
        return GetMessageClass(self.descriptor.input_type)

    @property
    def response(self) -> type[Message]:
        """Return the class of its response."""
        return GetMessageClass(self.descriptor.output_type)


@dataclass(frozen=True)
class Answer:
    """The outcome of a call."""

    code: grpc.StatusCode
    reason: str = ""
    domain: str = ""
    message: str = ""
    violations: tuple[tuple[str, str], ...] = ()


def every_rpc() -> list[Rpc]:
    """Return all RPCs of phylactery.*.v1."""
    found = []
    for path in sorted((GENERATED / "phylactery").rglob("*_pb2.py")):
        module = importlib.import_module(".".join(path.relative_to(GENERATED).with_suffix("").parts))
        for service in module.DESCRIPTOR.services_by_name.values():
            name = service.full_name.split(".")[1]
            found += [Rpc(name, f"/{service.full_name}/{method.name}", method) for method in service.methods]
    return found


async def call(
    channel: aio.Channel,
    rpc: Rpc,
    bodies: Sequence[bytes],
    metadata: Sequence[tuple[str, str | bytes]],
    *,
    refused: bool = False,
) -> Answer:
    """Send raw bytes and return the outcome; a call that hangs ends with DEADLINE_EXCEEDED.

    An endless stream not refused within half a second counts as accepted, unless it must be refused: then it has the
    time of any other call.
    """
    endless = rpc.name in ENDLESS and not refused
    sends = "stream" if rpc.descriptor.client_streaming else "unary"
    answers = "stream" if rpc.descriptor.server_streaming else "unary"
    stub = getattr(channel, f"{sends}_{answers}")(rpc.path)
    running: Any = stub(
        iter(bodies) if sends == "stream" else bodies[0],
        metadata=tuple(metadata),
        timeout=_LISTENS_SECONDS if endless else _HANGS_SECONDS,
    )
    try:
        if answers == "stream":
            async for _ in running:
                pass
        else:
            await running
    except aio.AioRpcError as error:
        if endless and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return Answer(grpc.StatusCode.OK)
        return _decoded(error)
    return Answer(grpc.StatusCode.OK)


async def call_all(
    channel: aio.Channel, rpc: Rpc, requests: dict[str, Sequence[bytes]], metadata: Sequence[tuple[str, str | bytes]]
) -> AsyncIterator[tuple[str, Answer]]:
    """Send many requests, several concurrently, and yield each with its outcome."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str, bodies: Sequence[bytes]) -> tuple[str, Answer]:
        async with gate:
            return name, await call(channel, rpc, bodies, metadata)

    for done in await asyncio.gather(*(one(name, bodies) for name, bodies in requests.items())):
        yield done


def spoilt(valid: Message) -> Iterator[tuple[str, bytes]]:
    """Yield a name and the bytes of every invalid variant of a valid request, one fault each."""
    yield "empty", b""
    yield "unknown fields alone", b"\xfa\xff\xff\xff\x0f\x03abc"
    for path, holder_of, field in _fields(valid.DESCRIPTOR, valid, lambda message: message, ""):
        for what, change in _changes(field):
            changed = type(valid)()
            changed.CopyFrom(valid)
            change(holder_of(changed))
            yield f"{path}: {what}", changed.SerializeToString()
        if field.type == FieldDescriptor.TYPE_STRING:
            changed = type(valid)()
            changed.CopyFrom(valid)
            _put(field, _PLACE)(holder_of(changed))
            data = changed.SerializeToString()
            for what, raw in _NO_UTF8.items():
                yield f"{path}: {what}", data.replace(_PLACE.encode(), raw.ljust(len(_PLACE), b"x"))


def with_text(valid: Message, text: str) -> Iterator[tuple[str, Message]]:
    """Yield a valid request with a text in one text field, for each such field, with the field's name."""
    for path, holder_of, field in _fields(valid.DESCRIPTOR, valid, lambda message: message, ""):
        is_struct = field.message_type is not None and field.message_type.full_name == _STRUCT
        if not is_struct and field.type not in {FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES}:
            continue
        changed = type(valid)()
        changed.CopyFrom(valid)
        holder = holder_of(changed)
        if is_struct:
            getattr(holder, field.name).update({"text": text, text: {"inside": [text]}})
        else:
            _put(field, text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text)(holder)
        yield path, changed


def truncated(valid: Message) -> Iterator[tuple[str, bytes]]:
    """Yield every proper prefix of a valid request."""
    data = valid.SerializeToString()
    for end in range(len(data)):
        yield f"the first {end} of {len(data)} bytes", data[:end]


Holder = Callable[[Message], Any]


def _fields(
    descriptor: Descriptor, filled: Message, holder_of: Holder, prefix: str
) -> Iterator[tuple[str, Holder, FieldDescriptor]]:
    """Yield every field, also of set submessages, with a path to the message that holds it."""
    for field in descriptor.fields:
        yield f"{prefix}{field.name}", holder_of, field
        if field.message_type is None or field.message_type.full_name == _STRUCT:
            continue
        values = getattr(filled, field.name)
        if field.is_repeated:
            inner = values[0] if values else None
            way = _way(holder_of, field.name, first=True)
        else:
            inner = values if filled.HasField(field.name) else None
            way = _way(holder_of, field.name, first=False)
        if inner is not None:
            yield from _fields(field.message_type, inner, way, f"{prefix}{field.name}.")


def _way(holder_of: Holder, name: str, *, first: bool) -> Holder:
    return lambda message: getattr(holder_of(message), name)[0] if first else getattr(holder_of(message), name)


def _changes(field: FieldDescriptor) -> Iterator[tuple[str, Callable[[Any], None]]]:
    yield "missing", lambda holder: holder.ClearField(field.name)
    if field.message_type is not None:
        if field.message_type.full_name == _STRUCT:
            yield from _struct_changes(field)
        elif field.is_repeated:
            yield (
                "2,000 of them",
                lambda holder: getattr(holder, field.name).MergeFrom([getattr(holder, field.name)[0]] * 2_000),
            )
        else:
            yield "empty", lambda holder: getattr(holder, field.name).SetInParent()
    elif field.type == FieldDescriptor.TYPE_STRING:
        for what, text in TEXTS.items():
            yield what, _put(field, text)
    elif field.type == FieldDescriptor.TYPE_BYTES:
        for value in _BYTES:
            yield f"{len(value)} bytes", _put(field, value)
    else:
        for number in _NUMBERS[field.cpp_type]:
            yield str(number), _put(field, number)


def _struct_changes(field: FieldDescriptor) -> Iterator[tuple[str, Callable[[Any], None]]]:
    deep, deeper = _nested(10), _nested(60)  # protobuf allows 100 levels, and each of these is five
    wide = {f"{MARK}{number}": number for number in range(3_000)}
    entity = {"text": {"__entity": {"type": "User", "id": MARK}}}
    odd: dict[str, Any] = {"a\x00b": 1, "": None, "text": [float("nan"), float("inf"), 1e308, 2.0**53]}
    for what, content in {"deep": deep, "deeper": deeper, "wide": wide, "an entity": entity, "odd": odd}.items():
        yield what, lambda holder, content=content: getattr(holder, field.name).update(content)


def _nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"a": "end"}
    for _ in range(depth):
        inner = {"a": [inner]}
    return inner


def _put(field: FieldDescriptor, value: Any) -> Callable[[Any], None]:
    def change(holder: Any) -> None:
        if field.is_repeated:
            getattr(holder, field.name).append(value)
        else:
            setattr(holder, field.name, value)

    return change


def _decoded(error: aio.AioRpcError) -> Answer:
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        detail.Unpack(info)
        detail.Unpack(bad)
    violations = tuple((one.field, one.description) for one in bad.field_violations)
    return Answer(error.code(), info.reason, info.domain, error.details() or "", violations)

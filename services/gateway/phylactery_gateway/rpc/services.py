"""The services that are offered over HTTP, as the generated code describes them, and the connections to them."""

from __future__ import annotations

import math
import pkgutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import grpc
import phylactery
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio
from grpc_reflection.v1alpha import reflection_pb2
from phylactery_chassis.errors import FailedPrecondition, StartError
from phylactery_chassis.rpc.channel import open_channel

EVALUATE_ACCESS: Final = "/phylactery.riskgate.v1.RiskGateService/EvaluateAccess"
_CURSORS: Final = ("resume_token", "after_sequence")
"""Fields of a request that continue a stream after an event."""
_SEQUENCE: Final = "sequence"
_REFLECTION: Final = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
_CHECK_SECONDS: Final = 30.0
"""How long it is taken for granted that a service still authenticates its callers."""
_CHECK_TIMEOUT: Final = 10.0
_CALLS_OF_A_CONNECTION: Final = 256
"""A service serves 512 calls of a connection at once, unless its operator sets another number, and lets more wait."""


@dataclass(frozen=True, slots=True)
class Method:
    """An RPC that is offered, and what calls it."""

    descriptor: MethodDescriptor
    request: type[Message]
    call: Any

    @property
    def path(self) -> str:
        """The path over gRPC and over HTTP alike."""
        return f"/{self.descriptor.containing_service.full_name}/{self.descriptor.name}"

    @property
    def streams(self) -> bool:
        """True if the response is a stream."""
        return bool(self.descriptor.server_streaming)

    @property
    def takes_stream(self) -> bool:
        """True if the request is a stream, which HTTP cannot carry here."""
        return bool(self.descriptor.client_streaming)

    def continue_after(self, request: Message, event_id: str) -> bool:
        """Let a request begin after an event. Return False if the id is not one of this stream."""
        fields = self.descriptor.input_type.fields_by_name
        name = next((name for name in _CURSORS if name in fields), "")
        if not name:
            return False
        if fields[name].cpp_type == FieldDescriptor.CPPTYPE_STRING:
            setattr(request, name, event_id)
        elif event_id.isascii() and event_id.isdigit() and len(event_id) <= len(str(2**62)):
            setattr(request, name, int(event_id))
        else:
            return False
        return True


def event_id(message: Any) -> str:
    """Return what a stream continues after: a message's resume token or sequence, '' if it has none."""
    fields = message.DESCRIPTOR.fields_by_name
    if "resume_token" in fields:
        return str(message.resume_token)
    holders = (getattr(message, field.name) for field in fields.values() if _has_sequence(field))
    return next((str(one.sequence) for one in holders if one.sequence), "")


def _has_sequence(field: FieldDescriptor) -> bool:
    return not field.is_repeated and field.message_type is not None and _SEQUENCE in field.message_type.fields_by_name


class _Connections:
    """Connections to one address; another is opened where each has as many calls as it should."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._calls: dict[aio.Channel, int] = {}

    def unary(self, make: Callable[[aio.Channel], Any]) -> Callable[..., Any]:
        """Return what calls a method with a unary response; ``make`` returns the callable of a channel."""

        async def call(request: Any, **options: Any) -> Any:
            channel = self._free()
            self._calls[channel] += 1
            try:
                return await make(channel)(request, **options)
            finally:
                self._calls[channel] -= 1

        return call

    def stream(self, make: Callable[[aio.Channel], Any]) -> Callable[..., Any]:
        """Return what calls a method with a streaming response; ``make`` returns the callable of a channel."""

        def call(request: Any, **options: Any) -> Any:
            channel = self._free()
            stream = make(channel)(request, **options)
            self._calls[channel] += 1
            stream.add_done_callback(lambda _: self._end(channel))
            return stream

        return call

    async def close(self) -> None:
        """Close them."""
        for channel in self._calls:
            await channel.close()

    def _free(self) -> aio.Channel:
        free = next((one for one, calls in self._calls.items() if calls < _CALLS_OF_A_CONNECTION), None)
        if free is None:
            free = open_channel(self._address, own_connection=True)
            self._calls[free] = 0
        return free

    def _end(self, channel: aio.Channel) -> None:
        self._calls[channel] -= 1


class _Target:
    """The connections to one address, and whether who answers there authenticates its callers.

    Streams last as long as their readers like, so they have connections apart: no number of them keeps a call waiting.
    """

    def __init__(self, address: str) -> None:
        self.calls, self.streams = _Connections(address), _Connections(address)
        self._reflect = self.calls.stream(
            lambda channel: channel.stream_stream(
                _REFLECTION,
                request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
            )
        )
        self._checked = -math.inf

    async def check_identity(self) -> None:
        """Raise FailedPrecondition if a call without an identity is served there, AioRpcError if none is answered.

        A service in mode none takes whoever reaches it for its own machine's, with every role. Whoever comes from
        elsewhere with a token must not become that by passing through here.
        """
        if time.monotonic() - self._checked < _CHECK_SECONDS:
            return
        question = reflection_pb2.ServerReflectionRequest(list_services="")
        call = self._reflect(iter([question]), timeout=_CHECK_TIMEOUT)
        try:
            async for _ in call:
                break
        except aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
                raise
            self._checked = time.monotonic()
            return
        finally:
            call.cancel()
        raise FailedPrecondition(
            "SERVICE_WITHOUT_IDENTITIES",
            "the service takes every caller for its own machine's (identity mode none), so it is not served here; "
            "set its identity mode to tokens",
        )


class Services:
    """The offered services, and the connections to their addresses."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        """``targets`` has the address of each service by its full name. Raise StartError for an unknown one."""
        known = known_services()
        unknown = sorted(targets.keys() - known.keys())
        if unknown:
            raise StartError(
                f"GATEWAY_RPC_SERVICES: no service is called '{unknown[0]}'; there are {', '.join(sorted(known))}"
            )
        self._targets = {address: _Target(address) for address in set(targets.values())}
        self._of_service = {name: self._targets[address] for name, address in targets.items()}
        offered = (_method(self._of_service[name], each) for name in targets for each in known[name].methods)
        self._methods = {method.path: method for method in offered}

    @property
    def methods(self) -> Sequence[Method]:
        """All methods that are offered."""
        return tuple(self._methods.values())

    def find(self, path: str) -> Method | None:
        """Return the method at a path, None if it is not offered."""
        return self._methods.get(path)

    async def check_identity(self, method: Method, *, required: bool) -> None:
        """Check that the method's service authenticates its callers, if that is required; see _Target."""
        if required:
            await self._of_service[method.descriptor.containing_service.full_name].check_identity()

    async def close(self) -> None:
        """Close the connections."""
        for target in self._targets.values():
            await target.calls.close()
            await target.streams.close()


def _method(target: _Target, descriptor: MethodDescriptor) -> Method:
    request, response = GetMessageClass(descriptor.input_type), GetMessageClass(descriptor.output_type)
    kinds = ("stream" if many else "unary" for many in (descriptor.client_streaming, descriptor.server_streaming))
    kind, path = "_".join(kinds), f"/{descriptor.containing_service.full_name}/{descriptor.name}"

    def make(channel: aio.Channel) -> Any:
        create = getattr(channel, kind)
        return create(path, request_serializer=request.SerializeToString, response_deserializer=response.FromString)

    call = target.streams.stream(make) if descriptor.server_streaming else target.calls.unary(make)
    return Method(descriptor, request, call)


def known_services() -> dict[str, ServiceDescriptor]:
    """Return every service of the contracts by its full name."""
    found: dict[str, ServiceDescriptor] = {}
    for module in pkgutil.walk_packages(phylactery.__path__, "phylactery."):
        if module.name.endswith("_pb2"):
            services = import_module(module.name).DESCRIPTOR.services_by_name
            found |= {service.full_name: service for service in services.values()}
    return found

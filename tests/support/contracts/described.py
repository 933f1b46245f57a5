"""All methods of a port, as described by its reflection service."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import MethodDescriptor
from grpc import aio
from grpc_reflection.v1alpha import reflection_pb2 as wire
from grpc_reflection.v1alpha import reflection_pb2_grpc

REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"
"""The same service as v1alpha under another name, for which the library ships no description."""


async def methods_of(channel: aio.Channel, metadata: Sequence[tuple[str, str]] = ()) -> dict[str, MethodDescriptor]:
    """Return the path and description of every method of every service of a port."""
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)

    async def ask(request: wire.ServerReflectionRequest) -> wire.ServerReflectionResponse:
        call = stub.ServerReflectionInfo(iter([request]), metadata=tuple(metadata))
        return await anext(aiter(call))

    listed = (await ask(wire.ServerReflectionRequest(list_services=""))).list_services_response.service
    pool, added = descriptor_pool.DescriptorPool(), set()
    found: dict[str, MethodDescriptor] = {}
    for name in sorted(one.name for one in listed):
        described = name if name != REFLECTION_V1 else "grpc.reflection.v1alpha.ServerReflection"
        answer = await ask(wire.ServerReflectionRequest(file_containing_symbol=described))
        waiting = [
            descriptor_pb2.FileDescriptorProto.FromString(each)
            for each in answer.file_descriptor_response.file_descriptor_proto
        ]
        while waiting:
            file = waiting.pop(0)
            if file.name in added:
                continue
            missing = [one for one in file.dependency if one not in added]
            if missing:
                have = {one.name for one in waiting}
                for one in missing:
                    if one not in have:
                        more = await ask(wire.ServerReflectionRequest(file_by_filename=one))
                        waiting += [
                            descriptor_pb2.FileDescriptorProto.FromString(each)
                            for each in more.file_descriptor_response.file_descriptor_proto
                        ]
                waiting.append(file)
                continue
            pool.Add(file)
            added.add(file.name)
        for method in pool.FindServiceByName(described).methods:
            found[f"/{name}/{method.name}"] = method
    return found

"""Serves profiles, a part of phylactery.memory.v1.MemoryService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2_grpc, profile_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_memory.domain.memories import Origin, Source
from phylactery_memory.encoding.memories import lineage_data
from phylactery_memory.encoding.profile import profile_message, value_data
from phylactery_memory.profiles import ProfileChange, Profiles
from phylactery_memory.requests.profile import GetProfileItem, SetProfileItem

Context = aio.ServicerContext[Any, Any]


class ProfileRpcs(memory_pb2_grpc.MemoryServiceServicer):
    """GetProfile and SetProfileFields."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    async def GetProfile(
        self, request: profile_pb2.GetProfileRequest, _context: Context
    ) -> profile_pb2.GetProfileResponse:
        """Answers the caller's profile."""
        asked = parse(GetProfileItem, {"max_superseded": request.max_superseded})
        profile = await self._profiles.get(current_principal(), superseded=asked.max_superseded)
        return profile_pb2.GetProfileResponse(profile=profile_message(profile))

    async def SetProfileFields(
        self, request: profile_pb2.SetProfileFieldsRequest, _context: Context
    ) -> profile_pb2.SetProfileFieldsResponse:
        """Sets and removes values of the caller's profile."""
        asked = parse(
            SetProfileItem,
            {
                "values": [value_data(value) for value in request.values],
                "remove": list(request.remove),
                "source": request.source,
                "lineage": lineage_data(request),
                "etag": request.etag,
            },
        )
        change = ProfileChange(
            values={item.name: item.value for item in asked.values},
            remove=asked.remove,
            source=Source(asked.source or Source.USER),
            lineage=tuple(Origin(item.thread_id, item.message_id, item.pointer) for item in asked.lineage),
            etag=asked.etag,
        )
        profile = await self._profiles.set(current_principal(), change)
        return profile_pb2.SetProfileFieldsResponse(profile=profile_message(profile))

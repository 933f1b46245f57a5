"""The profile part of phylactery.memory.v1.MemoryService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.memory.v1 import memory_pb2_grpc, profile_pb2, user_memory_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import from_message
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.api.memories import lineage_data, lineage_message
from phylactery_memory.memories.model import Origin, Source
from phylactery_memory.profile.model import Profile, ProfileField
from phylactery_memory.profile.requests import GetProfileItem, SetProfileItem
from phylactery_memory.profile.service import ProfileChange, Profiles


def value_data(message: profile_pb2.ProfileValue) -> dict[str, Any]:
    """Return a name and its value as validation input."""
    return {
        "name": message.name,
        "text_value": message.text_value if message.HasField("text_value") else None,
        "number_value": message.number_value if message.HasField("number_value") else None,
        "bool_value": message.bool_value if message.HasField("bool_value") else None,
    }


def field_message(field: ProfileField) -> profile_pb2.ProfileField:
    """Return a field as its message."""
    message = profile_pb2.ProfileField(
        name=field.name,
        source=user_memory_pb2.MemorySource.ValueType(field.source),
        trust=user_memory_pb2.Trust.ValueType(field.trust),
        lineage=[lineage_message(origin) for origin in field.lineage],
        memory_id=field.memory_id,
        valid_at=to_timestamp(field.valid_us),
        invalid_at=None if field.holds else to_timestamp(field.invalid_us),
    )
    if isinstance(field.value, bool):
        message.bool_value = field.value
    elif isinstance(field.value, str):
        message.text_value = field.value
    else:
        message.number_value = field.value
    return message


def profile_message(profile: Profile) -> profile_pb2.Profile:
    """Return a profile as its message."""
    return profile_pb2.Profile(
        fields=[field_message(field) for field in profile.fields],
        etag=profile.etag,
        superseded=[field_message(field) for field in profile.superseded],
    )


Context = aio.ServicerContext[Any, Any]


class ProfileRpcs(memory_pb2_grpc.MemoryServiceServicer):
    """GetProfile and SetProfileFields."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    async def GetProfile(
        self, request: profile_pb2.GetProfileRequest, _context: Context
    ) -> profile_pb2.GetProfileResponse:
        """Return the caller's profile."""
        asked = from_message(GetProfileItem, request)
        profile = await self._profiles.get(current_principal(), superseded=asked.max_superseded)
        return profile_pb2.GetProfileResponse(profile=profile_message(profile))

    async def SetProfileFields(
        self, request: profile_pb2.SetProfileFieldsRequest, _context: Context
    ) -> profile_pb2.SetProfileFieldsResponse:
        """Set and remove values of the caller's profile."""
        asked = from_message(
            SetProfileItem,
            request,
            values=[value_data(value) for value in request.values],
            remove=list(request.remove),
            lineage=lineage_data(request),
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

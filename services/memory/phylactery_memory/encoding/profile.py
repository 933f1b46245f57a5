"""Profiles between the wire and the domain."""

from __future__ import annotations

from typing import Any

from phylactery.memory.v1 import profile_pb2, user_memory_pb2
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_memory.domain.profile import Profile, ProfileField
from phylactery_memory.encoding.memories import lineage_message


def value_data(message: profile_pb2.ProfileValue) -> dict[str, Any]:
    """Answers a name and its value as the edge takes them."""
    return {
        "name": message.name,
        "text_value": message.text_value if message.HasField("text_value") else None,
        "number_value": message.number_value if message.HasField("number_value") else None,
        "bool_value": message.bool_value if message.HasField("bool_value") else None,
    }


def field_message(field: ProfileField) -> profile_pb2.ProfileField:
    """Answers a field as the wire carries it."""
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
    """Answers a profile as the wire carries it."""
    return profile_pb2.Profile(
        fields=[field_message(field) for field in profile.fields],
        etag=profile.etag,
        superseded=[field_message(field) for field in profile.superseded],
    )

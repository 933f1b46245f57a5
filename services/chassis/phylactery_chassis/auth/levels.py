"""Levels of identities that every service knows, and whose level a subject tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

USER: Final = "user"
GUEST: Final = "guest"
"""The level below all others: of people whom only a messaging channel names."""
CHANNEL_SUBJECTS: Final[Mapping[str, str]] = {"whatsapp": "wa:", "telegram": "tg:"}
"""How the subjects of people of a channel begin. Nobody checked who they are except the channel."""


def is_of_channel(subject: str) -> bool:
    """Return True if a subject is a person of a channel."""
    return subject.startswith(tuple(CHANNEL_SUBJECTS.values()))

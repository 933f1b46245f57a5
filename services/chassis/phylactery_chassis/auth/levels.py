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


def level_of_delegated(subject: str, told: str = "") -> str:
    """Return the level of an end user whom a delegate names, and of whom it tells GUEST, USER or nothing ("").

    A person of a channel is a guest unless the delegate tells that an operator lifted them, anybody else only if it
    tells so. Policies may know a user at another level than USER.
    """
    return told or (GUEST if is_of_channel(subject) else USER)

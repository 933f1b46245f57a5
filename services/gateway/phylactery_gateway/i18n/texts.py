"""The gateway's sentences in the language of a conversation."""

from __future__ import annotations

from typing import Final

from phylactery_chassis.util.messages import LANGUAGES, read_messages

FALLBACK: Final = "en"


def say(key: str, language: str, **values: object) -> str:
    """Return a message; a language without a file of messages gets English."""
    return read_messages(__package__, language if language in LANGUAGES else FALLBACK)(key, **values)

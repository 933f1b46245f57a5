"""Access to the messages of the language files; the sentences that name tools are in texts."""

from __future__ import annotations

from typing import get_args

from phylactery_chassis.util.messages import read_messages

from phylactery_agent.ports import Language

_PACKAGE = __name__.rpartition(".")[0]


def message(key: str, language: Language, **values: object) -> str:
    """Return a message. Raise KeyError for an unknown id or a missing value, which tests detect."""
    return read_messages(_PACKAGE, language)(key, **values)


def is_message(key: str) -> bool:
    """Return True if there is a message of this id."""
    return key in read_messages(_PACKAGE, "en")


def in_each_language(key: str) -> dict[Language, str]:
    """Return a message in each language, as a template of str.format."""
    return {language: read_messages(_PACKAGE, language).template(key) for language in get_args(Language)}

"""The language the commands speak to a person: RISKGATE_LANG, or what the terminal's locale says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["es", "en"]

_VARIABLES = ("RISKGATE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


def preferred_language() -> Language:
    """Answers 'es' or 'en'."""
    said = next((value for name in _VARIABLES if (value := os.environ.get(name, ""))), "")
    return "es" if said.lower().startswith("es") else "en"


class Texts:
    """The texts of one language, by key."""

    def __init__(self, texts: Mapping[str, tuple[str, str]], language: Language | None = None) -> None:
        """Takes each text in English and Spanish; without a language it is the preferred one."""
        self.language = language or preferred_language()
        self._texts = texts

    def __call__(self, key: str, **values: object) -> str:
        """Answers a text with its values filled in."""
        english, spanish = self._texts[key]
        text = spanish if self.language == "es" else english
        return text.format(**values) if values else text

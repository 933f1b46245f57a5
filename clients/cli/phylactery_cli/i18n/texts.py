"""Texts of the command, in English and Spanish; the sentences are in en.ftl and es.ftl beside this module."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from phylactery_chassis.util.messages import read_messages

Language: TypeAlias = Literal["es", "en"]

_HANDOFFS = frozenset(f"handoff_now_{state}" for state in ("OPEN", "CLAIMED", "RELEASED", "CLOSED"))
_PACKAGE = __name__.rpartition(".")[0]


def preferred_language() -> Language:
    """Return 'es' or 'en' by the terminal's locale."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "es" if locale.lower().startswith("es") else "en"


class Texts:
    """The texts of one language, from its file of messages."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._messages = read_messages(_PACKAGE, language)

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its values filled in."""
        return self._messages(key, **values)

    def help(self, topic: str) -> str:
        """Return the help on a topic, or the short overview for an unknown one."""
        return self._messages.get(f"help_{topic}", self("help"))

    def columns(self, key: str) -> tuple[str, ...]:
        """Return a table's column headers."""
        return tuple(self._messages(key).split(","))

    def memory_word(self, word: str) -> str:
        """Return the display text of a word of memory's contract."""
        return self._messages.get(f"memory_word_{word}", word.lower())

    def approval_word(self, word: str) -> str:
        """Return the display text of a word of RiskGate's contract."""
        return self._messages.get(f"approval_word_{word}", word)

    def run_word(self, word: str) -> str:
        """Return the display text of a state of a run, a tool call or a step, or of what became of an effect."""
        return self._messages.get(f"runs_word_{word}", word)

    def handoff(self, state: str, name: str) -> str:
        """Return who answers in a thread, as its user is told; '' for an unknown state."""
        return self(f"handoff_now_{state}", name=name) if f"handoff_now_{state}" in _HANDOFFS else ""

    def handoff_word(self, word: str) -> str:
        """Return the display text of a state, a policy or a kind of entry of the queue."""
        return self._messages.get(f"handoff_word_{word}", word)

    def event_label(self, word: str) -> str:
        """Return the label before an event."""
        return self._messages.get(f"event_label_{word}", word)

    def event_state(self, word: str) -> str:
        """Return a state, decision or reason of an event in words."""
        return self._messages.get(f"event_state_{word}", word)

    def found(self, kind: str) -> str:
        """Return a kind of personal data in words; a secret's kind replaces it in the text, and is shown unchanged."""
        return self._messages.get(f"event_found_{kind}", kind)

"""How events and their states read, in English and Spanish. A stable word nobody translates reads as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_cli.texts import Language

_LABELS: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {},
    "es": {
        "memory": "memoria",
        "route": "ruta",
        "step": "paso",
        "propose": "propone",
        "result": "efecto",
        "notice": "aviso",
        "run": "tarea",
        "riskgate": "riskgate",
    },
}
_STATES: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {"TRANSCRIPT_FULL": "memory keeps no more of this conversation; go on in a new one"},
    "es": {
        "TRANSCRIPT_FULL": "la memoria no guarda más de esta conversación; sigue en una nueva",
        "pending": "pendiente",
        "running": "en curso",
        "done": "hecho",
        "failed": "fallido",
        "blocked": "bloqueado",
        "success": "bien",
        "error": "error",
        "evicted": "guardado aparte",
        "ALLOW": "PERMITIDO",
        "AUTH_REQUIRED": "HAY QUE APROBARLO",
        "BLOCKED": "BLOQUEADO",
        "QUEUED": "EN COLA",
        "RUNNING": "EN CURSO",
        "SUSPENDED": "EN ESPERA",
        "DONE": "TERMINADA",
        "FAILED": "FALLIDA",
        "ANSWERED": "respondida",
        "AWAITING_APPROVAL": "espera que una persona apruebe",
        "AWAITING_USER_INPUT": "espera lo que digas",
        "CANCELLED": "cancelada",
    },
}
_PHRASES: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "not_read": "not read ({reason})",
        "characters": "{size} characters",
        "kept": "kept as {pointer}",
        "in": "in what you said",
        "out": "in the answer",
        "result": "in a tool's result",
    },
    "es": {
        "not_read": "no leída ({reason})",
        "characters": "{size} caracteres",
        "kept": "guardado como {pointer}",
        "in": "en lo que dijiste",
        "out": "en la respuesta",
        "result": "en lo que dio una herramienta",
    },
}


class EventTexts:
    """The words of one language."""

    def __init__(self, language: Language) -> None:
        self._labels, self._states, self._phrases = _LABELS[language], _STATES[language], _PHRASES[language]

    def label(self, word: str) -> str:
        """Answers what stands before an event."""
        return self._labels.get(word, word)

    def state(self, word: str) -> str:
        """Answers a state, a decision or a reason as a person reads it."""
        return self._states.get(word, word)

    def phrase(self, key: str, **values: object) -> str:
        """Answers a phrase with its values filled in; a key that is none is answered as it stands."""
        return self._phrases.get(key, key).format(**values)

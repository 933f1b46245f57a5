"""English and Spanish words for events and their states. An unknown word is shown unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_cli.i18n.texts import Language

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
    "en": {
        "TRANSCRIPT_FULL": "memory keeps no more of this conversation; go on in a new one",
        "SECRETS_REDACTED": "secrets were taken out",
        "PERSONAL_DATA": "personal data",
        "NOT_INSPECTED": "nobody could inspect it",
        "DO_NOT_STORE": "nothing of this is kept",
    },
    "es": {
        "TRANSCRIPT_FULL": "la memoria no guarda más de esta conversación; sigue en una nueva",
        "SECRETS_REDACTED": "se han quitado secretos",
        "PERSONAL_DATA": "datos personales",
        "NOT_INSPECTED": "nadie ha podido inspeccionarlo",
        "DO_NOT_STORE": "no se guarda nada de esto",
        "low": "bajo",
        "medium": "medio",
        "high": "alto",
        "critical": "crítico",
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
        "INTERRUPTED": "otro mensaje pidió pasar delante",
        "APPROVAL_REJECTED": "se rechazó la aprobación",
        "APPROVAL_EXPIRED": "caducó la aprobación",
        "APPROVAL_CANCELLED": "se anuló la aprobación",
        "NOTHING_WAITS": "nada esperaba una respuesta",
        "TOOL_FAILED": "una herramienta falló",
        "STEP_LIMIT": "llegó al límite de pasos",
        "TOOL_CALL_LIMIT": "llegó al límite de llamadas",
        "ACTIVE_TIME_LIMIT": "llegó al límite de tiempo",
        "TOO_MANY_ATTEMPTS": "se intentó demasiadas veces",
        "REPEATED_CALL": "se repetía la misma llamada",
        "ALTERNATING_CALLS": "dos llamadas se alternaban sin fin",
        "EFFECT_IN_DOUBT": "no se sabe si llegó a hacerse",
        "GATE_UNAVAILABLE": "RiskGate no responde",
        "MEMORY_UNAVAILABLE": "la memoria no responde",
        "GRAPH_CHANGED": "el grafo es otro desde una actualización",
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
_FOUND: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "iban": "IBAN",
        "card": "card number",
        "es_nie": "NIE",
        "es_dni": "DNI",
        "es_cif": "CIF",
        "us_ssn": "social security number",
        "email": "e-mail address",
        "phone": "phone number",
        "ip_address": "IP address",
    },
    "es": {
        "iban": "IBAN",
        "card": "número de tarjeta",
        "es_nie": "NIE",
        "es_dni": "DNI",
        "es_cif": "CIF",
        "us_ssn": "número de la seguridad social",
        "email": "dirección de correo",
        "phone": "número de teléfono",
        "ip_address": "dirección IP",
    },
}
"""Kinds of personal data. A secret's kind replaces it in the text, and is worded the same here."""


class EventTexts:
    """The words of one language."""

    def __init__(self, language: Language) -> None:
        self._labels, self._states, self._phrases = _LABELS[language], _STATES[language], _PHRASES[language]
        self._found = _FOUND[language]

    def label(self, word: str) -> str:
        """Return the label before an event."""
        return self._labels.get(word, word)

    def state(self, word: str) -> str:
        """Return a state, decision or reason in words."""
        return self._states.get(word, word)

    def found(self, kind: str) -> str:
        """Return a kind of finding in words."""
        return self._found.get(kind, kind)

    def phrase(self, key: str, **values: object) -> str:
        """Return a phrase with its values filled in; an unknown key is returned unchanged."""
        return self._phrases.get(key, key).format(**values)

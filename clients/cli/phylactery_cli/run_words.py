"""How the words of runs, of their calls and of their plans read."""

from __future__ import annotations

from collections.abc import Mapping

from phylactery_cli.texts import Language

_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {"in_doubt": "in doubt"},
    "es": {
        "QUEUED": "EN COLA",
        "RUNNING": "EN CURSO",
        "SUSPENDED": "EN ESPERA",
        "DONE": "TERMINADA",
        "FAILED": "FALLIDA",
        "CANCELLED": "CANCELADA",
        "DEAD": "ABANDONADA",
        "proposed": "propuesta",
        "denied": "denegada",
        "started": "empezada",
        "finished": "terminada",
        "in_doubt": "en duda",
        "pending": "pendiente",
        "running": "en curso",
        "done": "hecho",
        "failed": "fallido",
        "blocked": "bloqueado",
        "HAPPENED": "ocurrió",
        "DID_NOT_HAPPEN": "no ocurrió",
    },
}


def word(language: Language, value: str) -> str:
    """Answers a word as a person reads it; one this command does not know as it stands."""
    return _WORDS[language].get(value, value)

"""What the command says to a person, in English and Spanish."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["es", "en"]

_TEXTS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "approve_verb": "APPROVE",
        "reject_verb": "REJECT",
        "you": "you",
        "agent": "agent",
        "hint": 'Try: read welcome.txt   ·   write "hello" to notes.txt   ·   /help',
        "files": "files the agent may touch",
        "approval": "A person has to approve this",
        "tool": "tool",
        "risk": "risk",
        "expires": "expires in {minutes} min",
        "answer": "/approve to let it run once   ·   /reject to cancel it",
        "or_type": "or type: {text}",
        "nothing_waits": "Nothing waits for an answer.",
        "no_turn": "No turn yet: say something first.",
        "no_spans": "No spans of that turn here: the services write them below another data folder.",
        "bye": "Stopping the services …",
        "stopped": "Stopped. Everything is kept in {folder}.",
        "unknown": "No such command: {text}. /help lists them.",
        "elsewhere": "This approval is answered at RiskGate, not here: phylactery approvals show {id}",
        "help": (
            "/approve        approve what waits, once\n"
            "/reject         reject what waits\n"
            "/trace          show the last turn through the three services\n"
            "/help           this list\n"
            "/quit           leave (Ctrl-D too)\n"
            "Anything else goes to the agent, in English or Spanish."
        ),
        "died": "{service} has ended by itself. Its log: {log}",
        "failed": "That did not work: {message}",
        "no_text": "That is not UTF-8 text, so it was not sent.",
        "away": "The agent does not answer at {target}. Is it running? phylactery up starts it.",
    },
    "es": {
        "approve_verb": "APROBAR",
        "reject_verb": "RECHAZAR",
        "you": "tú",
        "agent": "agente",
        "hint": 'Prueba: lee welcome.txt   ·   escribe "hola" en notas.txt   ·   /help',
        "files": "archivos que el agente puede tocar",
        "approval": "Una persona tiene que aprobar esto",
        "tool": "herramienta",
        "risk": "riesgo",
        "expires": "caduca en {minutes} min",
        "answer": "/approve para que se ejecute una vez   ·   /reject para cancelarlo",
        "or_type": "o escribe: {text}",
        "nothing_waits": "Nada espera una respuesta.",
        "no_turn": "Todavía no hay ningún turno: di algo primero.",
        "no_spans": "Aquí no hay spans de ese turno: los servicios los escriben en otra carpeta de datos.",
        "bye": "Deteniendo los servicios …",
        "stopped": "Detenido. Todo queda guardado en {folder}.",
        "unknown": "No existe la orden {text}. /help las enumera.",
        "elsewhere": "Esta aprobación se responde en RiskGate, no aquí: phylactery approvals show {id}",
        "help": (
            "/approve        aprueba lo que espera, una vez\n"
            "/reject         rechaza lo que espera\n"
            "/trace          muestra el último turno a través de los tres servicios\n"
            "/help           esta lista\n"
            "/quit           salir (también Ctrl-D)\n"
            "Todo lo demás va al agente, en español o en inglés."
        ),
        "died": "{service} ha terminado por sí solo. Su registro: {log}",
        "failed": "No ha funcionado: {message}",
        "no_text": "Eso no es texto UTF-8, así que no se ha enviado.",
        "away": "El agente no responde en {target}. ¿Está en marcha? phylactery up lo arranca.",
    },
}


def preferred_language() -> Language:
    """Answers 'es' or 'en', from the terminal's locale."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "es" if locale.lower().startswith("es") else "en"


class Texts:
    """The texts of one language."""

    def __init__(self, language: Language) -> None:
        self._texts = _TEXTS[language]

    def __call__(self, key: str, **values: object) -> str:
        """Answers a text with its values filled in."""
        return self._texts[key].format(**values) if values else self._texts[key]

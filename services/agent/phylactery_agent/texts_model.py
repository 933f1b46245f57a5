"""What a person reads where a model works or RiskGate inspects, in Spanish and English; texts.say finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_agent.ports import Language

MODEL_TEXTS: Final[Mapping[str, Mapping[Language, str]]] = {
    "model_away": {
        "es": "(El modelo no está disponible ({reason}): sigo con mis reglas fijas. No se ha perdido nada.)",
        "en": "(The model is not available ({reason}): I am going on with my fixed rules. Nothing is lost.)",
    },
    "model_plan_invalid": {
        "es": "(El modelo no ha dado un plan que se pueda seguir: sigo con mis reglas fijas.)",
        "en": "(The model gave no plan that can be followed: I am going on with my fixed rules.)",
    },
    "result_withheld": {
        "es": "{tool} ha terminado; no cito su resultado.",
        "en": "{tool} is done; I do not quote its result.",
    },
    "reply_withheld": {
        "es": "Tengo una respuesta, pero no la muestro.",
        "en": "I have an answer, but I do not show it.",
    },
    "not_inspected": {
        "es": "(RiskGate no responde, así que no puedo revisar lo que iba a citar y no lo cito. Pídemelo otra vez"
        " dentro de un momento.)",
        "en": "(RiskGate does not answer, so I cannot check what I was about to quote, and I do not quote it. Ask me"
        " again in a moment.)",
    },
    "secrets_redacted": {
        "es": "(He tachado claves o contraseñas de la respuesta.)",
        "en": "(I redacted keys or passwords from the answer.)",
    },
    "not_stored": {
        "es": "(No guardo nada de este mensaje en la memoria.)",
        "en": "(I keep nothing of this message in memory.)",
    },
}

MODEL_ERRORS: Final[Mapping[str, Mapping[Language, str]]] = {
    "REPEATED_CALL": {"es": "se repetía la misma llamada", "en": "the same call was repeated"},
    "ALTERNATING_CALLS": {
        "es": "dos llamadas se turnaban sin avanzar",
        "en": "two calls took turns and nothing came of it",
    },
    "MODEL_CALL_INVALID": {
        "es": "el modelo no ha propuesto una llamada válida",
        "en": "the model proposed no valid call",
    },
    "MODEL_AWAY": {
        "es": "el modelo no está disponible y este paso lo necesita",
        "en": "the model is not available and this step needs it",
    },
    "DO_NOT_STORE": {
        "es": "has pedido que no se guarde nada de este mensaje",
        "en": "you asked for nothing of this message to be kept",
    },
}

"""Replies of the runtime for turns that cannot be served; all other texts a person reads come from the graph."""

from __future__ import annotations

from typing import Final

from phylactery_agent.ports import Language

MEMORY_UNAVAILABLE: Final = "MEMORY_UNAVAILABLE"
GATE_UNAVAILABLE: Final = "GATE_UNAVAILABLE"
STEP_LIMIT: Final = "STEP_LIMIT"
TOO_MANY_ATTEMPTS: Final = "TOO_MANY_ATTEMPTS"
INTERNAL_ERROR: Final = "INTERNAL_ERROR"
CANCELLED: Final = "CANCELLED"
INTERRUPTED: Final = "INTERRUPTED"
ACTIVE_TIME_LIMIT: Final = "ACTIVE_TIME_LIMIT"
STATE_LOST: Final = "STATE_LOST"
GRAPH_CHANGED: Final = "GRAPH_CHANGED"

_TEXTS: Final[dict[str, dict[Language, str]]] = {
    MEMORY_UNAVAILABLE: {
        "es": "El servicio de memoria no responde y la tarea se ha detenido. "
        "Revisa el registro de la ejecución antes de repetirla.",
        "en": "The memory service does not answer and the task was stopped. "
        "Look at the run's record before you repeat it.",
    },
    GATE_UNAVAILABLE: {
        "es": "RiskGate no responde, así que no se puede ejecutar ninguna herramienta. "
        "Inténtalo de nuevo en un momento.",
        "en": "RiskGate does not answer, so no tool may run. Please try again in a moment.",
    },
    STEP_LIMIT: {
        "es": "He parado: la tarea necesitaba más pasos de los permitidos en un turno.",
        "en": "I stopped: the task needed more steps than one turn allows.",
    },
    ACTIVE_TIME_LIMIT: {
        "es": "He parado: la tarea necesitaba más tiempo del permitido. "
        "Lo que ya se había hecho sigue hecho; mira el registro de la ejecución.",
        "en": "I stopped: the task needed more time than it may take. "
        "What had been done already stays done; look at the run's record.",
    },
    TOO_MANY_ATTEMPTS: {
        "es": "He parado: este mensaje se interrumpió demasiadas veces mientras se atendía. "
        "Revisa el registro de la ejecución antes de repetirlo.",
        "en": "I stopped: this message was interrupted too often while it was served. "
        "Look at the run's record before you repeat it.",
    },
    INTERNAL_ERROR: {
        "es": "Algo ha fallado por nuestra parte y la tarea se ha detenido. "
        "Revisa el registro de la ejecución antes de repetirla.",
        "en": "Something failed on our side and the task was stopped. Look at the run's record before you repeat it.",
    },
    STATE_LOST: {
        "es": "No puedo continuar lo que esperaba tu respuesta: su estado ya no está guardado. Pídelo de nuevo.",
        "en": "I cannot go on with what waited for your answer: its state is not kept any more. Please ask again.",
    },
    GRAPH_CHANGED: {
        "es": "No puedo continuar lo que estaba a medias: el agente se ha actualizado y trabaja de otra manera. "
        "Mira el registro de la ejecución y pídelo de nuevo.",
        "en": "I cannot go on with what was half done: the agent was updated and works in another way now. "
        "Look at the run's record and ask again.",
    },
    CANCELLED: {
        "es": "Cancelado, como pediste. Lo que ya se había hecho sigue hecho; mira el registro de la ejecución.",
        "en": "Cancelled, as you asked. What had been done already stays done; look at the run's record.",
    },
    INTERRUPTED: {
        "es": "He parado: otro mensaje de esta conversación pidió pasar delante. Lo que ya se había hecho sigue hecho.",
        "en": "I stopped: another message in this conversation asked to go first. "
        "What had been done already stays done.",
    },
}


def apology(reason: str, language: Language) -> str:
    """Return the reply text for one of the reasons above."""
    return _TEXTS[reason][language]

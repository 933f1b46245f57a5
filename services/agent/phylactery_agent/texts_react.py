"""What a person reads of the react graph, in Spanish and English; texts.say finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_agent.ports import Language

REACT_TEXTS: Final[Mapping[str, Mapping[Language, str]]] = {
    "react_block": {
        "es": "Evidencia: {evidence}\nConfianza: {confidence}",
        "en": "Evidence: {evidence}\nConfidence: {confidence}",
    },
    "react_no_evidence": {"es": "ninguna", "en": "none"},
    "react_step_limit": {
        "es": "He parado: no quedan pasos ({steps} por episodio, {limit} por turno).",
        "en": "I stopped: no steps are left ({steps} an episode, {limit} a turn).",
    },
    "react_round_limit": {
        "es": "He parado: el modelo ha vuelto a pedir herramientas y ya no podía.",
        "en": "I stopped: the model asked for tools again, and it had used its turn to do so.",
    },
    "react_call_invalid": {
        "es": "El modelo pidió lo que no se puede llamar, y no se ha llamado: {problems}",
        "en": "The model asked for what cannot be called, and it was not called: {problems}",
    },
}

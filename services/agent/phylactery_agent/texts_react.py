"""What a person reads of the react graph, in Spanish and English; texts.say finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_agent.ports import Language

REACT_TEXTS: Final[Mapping[str, Mapping[Language, str]]] = {
    "react_step_limit": {
        "es": "He parado: esto necesita más pasos de los que puedo dar de una vez. Pídemelo por partes.",
        "en": "I stopped: this needs more steps than I can take at once. Ask me for it in parts.",
    },
    "react_round_limit": {
        "es": "He parado: esto necesita más vueltas de las que puedo dar de una vez. Pídemelo por partes.",
        "en": "I stopped: this takes more rounds than I can do at once. Ask me for it in parts.",
    },
    "react_call_invalid": {
        "es": "El modelo pidió algo que no existe o no encaja, y no se ha hecho.",
        "en": "The model asked for something that does not exist or fit, and it was not done.",
    },
}

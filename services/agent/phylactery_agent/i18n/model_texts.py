"""User-facing texts about models and inspection, in Spanish and English, looked up by texts.say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_agent.ports import Language

MODEL_TEXTS: Final[Mapping[str, Mapping[Language, str]]] = {
    "model_away": {
        "es": "Ahora mismo no me responde el modelo, así que solo puedo hacer cosas sencillas: ficheros, recordatorios"
        " y correo.",
        "en": "The model is not reachable right now, so I can only do simple things: files, reminders, mail.",
    },
    "model_refuses": {
        "es": "El modelo no admite mis preguntas, y eso lo tiene que arreglar quien lleva este servicio; mientras tanto"
        " solo puedo hacer cosas sencillas: ficheros, recordatorios y correo.",
        "en": "The model does not take my questions, which whoever runs this service has to mend; until then I can only"
        " do simple things: files, reminders, mail.",
    },
    "model_still_away": {
        "es": "Sin el modelo, que sigue sin responder, eso no lo entiendo. «ayuda» muestra lo que sí puedo hacer.",
        "en": "Without the model, which is still not reachable, I don't get that. “help” shows what I can do.",
    },
    "model_too_long": {
        "es": "Esta conversación ya es más larga de lo que admite el modelo, así que te contesto sin él; en una"
        " conversación nueva vuelve a funcionar.",
        "en": "This conversation is longer than the model takes, so I answer without it; a new conversation works"
        " again.",
    },
    "model_spent": {
        "es": "Con esto ya he usado el modelo todo lo que puedo para una petición; sigo sin él.",
        "en": "I have used the model as much as I may for one request; I go on without it.",
    },
    "model_not_inspected": {
        "es": "No he podido comprobar lo que iba a enseñarle al modelo, así que sigo sin él.",
        "en": "I could not check what I was about to show the model, so I go on without it.",
    },
    "model_unusable": {
        "es": "El modelo no ha dado una respuesta que sirva; sigo sin él.",
        "en": "The model gave no answer I can use; I go on without it.",
    },
    "model_plan_invalid": {
        "es": "El modelo no ha dado un plan que se pueda seguir; sigo sin él.",
        "en": "The model gave no plan that can be followed; I go on without it.",
    },
    "claim_send": {"es": "No se ha enviado nada.", "en": "Nothing was sent."},
    "claim_write": {"es": "No se ha escrito ni cambiado nada.", "en": "Nothing was written or changed."},
    "claim_delete": {"es": "No se ha borrado ni cancelado nada.", "en": "Nothing was deleted or cancelled."},
    "claim_remind": {"es": "No se ha creado ningún recordatorio.", "en": "No reminder was set."},
    "claim_other": {"es": "No se ha hecho nada de eso.", "en": "None of that was done."},
    "claim_unsure": {
        "es": "No sé si eso llegó a hacerse; compruébalo antes de pedirlo otra vez.",
        "en": "I do not know whether that was done; check before you ask for it again.",
    },
    "claim_again": {
        "es": "Si lo quieres, pídemelo otra vez con todos los datos.",
        "en": "If you want it, ask me again with all the details.",
    },
    "result_withheld": {
        "es": "Hecho; ahora no puedo mostrar el resultado.",
        "en": "Done; I cannot show the result at the moment.",
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

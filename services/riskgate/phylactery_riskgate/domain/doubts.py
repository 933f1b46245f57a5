"""Why a person is asked about a call of a task, in a sentence that a person believes.

The sentence is made of what kind of thing was not understood. It never holds the person's words or an argument's value:
reasons are logged and travel, and the approval shows the call itself.
"""

from __future__ import annotations

from typing import Final

from phylactery_riskgate.domain.model import Reason
from phylactery_riskgate.domain.tasks.model import TaskFacts

_NOT_UNDERSTOOD: Final = "NOT_UNDERSTOOD"
_SENTENCES: Final[dict[str, tuple[str, str]]] = {
    "unasked": ("You did not ask for this.", "No pediste esto."),
    "negation": (
        "Part of what you said forbids something, and I am not sure what.",
        "Parte de lo que dijiste prohíbe algo, y no sé con seguridad qué.",
    ),
    "exclusion": (
        "You left something out, and I am not sure that this is what remains.",
        "Dejaste algo fuera, y no sé con seguridad si esto es lo que queda.",
    ),
    "condition": (
        "You tied it to a condition, and I cannot tell whether it holds.",
        "Lo ataste a una condición, y no sé si se cumple.",
    ),
    "question": (
        "It sounded like a question, not like a request.",
        "Sonaba a pregunta, no a petición.",
    ),
    "hypothetical": ("It sounded like an idea, not like a request.", "Sonaba a una idea, no a una petición."),
    "report": ("You told what somebody else said or wants.", "Contaste lo que dijo o quiere otra persona."),
    "permission": (
        "You spoke of what is allowed, not of what to do.",
        "Hablaste de lo que se puede, no de lo que hay que hacer.",
    ),
    "past": ("It sounded as if it were done already.", "Sonaba a que ya está hecho."),
    "future": ("It sounded as if it were for later.", "Sonaba a que es para más tarde."),
    "irony": ("It sounded like a joke.", "Sonaba a broma."),
    "retraction": ("You took something back.", "Te retractaste de algo."),
    "announce": ("You spoke of the words, not of doing it.", "Hablaste de las palabras, no de hacerlo."),
    "idiom": ("It may be just a way of speaking.", "Puede ser solo una forma de hablar."),
    "trailing": (
        "You said something after the request that I do not understand.",
        "Dijiste algo después de la petición que no entiendo.",
    ),
    "leftover": (
        "Part of what you asked for is not in this.",
        "Parte de lo que pediste no está en esto.",
    ),
    "value": (
        "Something in this is not what you said.",
        "Algo de esto no es lo que dijiste.",
    ),
    "time": ("I am not sure about the time.", "No estoy seguro de la hora o la fecha."),
    "mode": (
        "I am not sure whether to add to what is there or to replace it.",
        "No sé con seguridad si añadir a lo que hay o reemplazarlo.",
    ),
    "content": (
        "What it says is not quite what you said.",
        "Lo que dice no es exactamente lo que dijiste.",
    ),
    "pasted": (
        "Part of your message may be somebody else's text.",
        "Parte de tu mensaje puede ser texto de otra persona.",
    ),
    "disguise": (
        "Your message holds characters that look like others.",
        "Tu mensaje tiene caracteres que parecen otros.",
    ),
    "mark": (
        "Your message holds a mark that may strike out or deny it.",
        "Tu mensaje tiene una marca que puede tacharlo o negarlo.",
    ),
    "framed": (
        "What you said around it may mean that it is not to be done, or not yet.",
        "Lo que dijiste alrededor puede significar que no se haga, o todavía no.",
    ),
    "length": ("Your message is too long to be sure.", "Tu mensaje es demasiado largo para estar seguro."),
    "used-up": ("You asked for this once, and it was done.", "Lo pediste una vez, y ya se hizo."),
}
_UNSURE: Final = ("I am not sure that you asked for this.", "No estoy seguro de que hayas pedido esto.")


def doubt(facts: TaskFacts) -> Reason | None:
    """Return why a call of a task is not taken for what the user asked for, None where it is, or there is no task."""
    kind = facts.missing[0]
    if not facts.shown or not kind:
        return None
    english, spanish = _SENTENCES.get(kind, _UNSURE)
    return Reason(_NOT_UNDERSTOOD, english, spanish)

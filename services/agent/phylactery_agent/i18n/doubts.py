"""Clarifying questions for partly understood requests, in Spanish and English, by kind of doubt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_agent.ports import Language

DOUBT_TEXTS: Final[Mapping[str, Mapping[Language, str]]] = {
    "doubt_negation": {
        "es": "En «{clause}» dices que algo no se haga, y no sé con seguridad qué. No he hecho nada."
        " Pídelo sin esa parte."
        " Si es parte del texto, ponlo entre comillas.",
        "en": "In “{clause}” you say that something is not to be done, and I am not sure what. I have done nothing."
        " Ask again without it. If it belongs to the text, put the text in quotes.",
    },
    "doubt_exclusion": {
        "es": "En «{clause}» dejas algo fuera, y no sé hacerlo así. No he hecho nada. Dime solo lo que sí quieres.",
        "en": "In “{clause}” you leave something out, and I cannot do it like that. I have done nothing."
        " Name only what you do want.",
    },
    "doubt_condition": {
        "es": "«{clause}» depende de una condición, y no sé si se cumple. No he hecho nada."
        " Si es para ahora, pídelo sin la condición.",
        "en": "“{clause}” depends on a condition, and I cannot tell whether it holds. I have done nothing."
        " If it is to be done now, ask without the condition.",
    },
    "doubt_hypothetical": {
        "es": "«{clause}» suena a una idea. No he hecho nada. Si lo quieres, pídelo sin rodeos.",
        "en": "“{clause}” sounds like an idea. I have done nothing. If you want it, just ask for it.",
    },
    "doubt_report": {
        "es": "En «{clause}» cuentas lo que dijo otra persona. No he hecho nada."
        " Si lo quieres tú, pídelo con tus palabras.",
        "en": "In “{clause}” you tell what somebody else said. I have done nothing."
        " If you want it, ask for it yourself.",
    },
    "doubt_permission": {
        "es": "«{clause}» habla de lo que se puede hacer. No he hecho nada. Si lo quieres, pídelo sin rodeos.",
        "en": "“{clause}” speaks of what may be done. I have done nothing. If you want it, just ask for it.",
    },
    "doubt_past": {
        "es": "«{clause}» habla de algo que ya pasó. No he hecho nada. Di qué quieres ahora."
        " Si es parte del texto, ponlo entre comillas.",
        "en": "“{clause}” speaks of something past. I have done nothing. Say what you want now."
        " If it belongs to the text, put the text in quotes.",
    },
    "doubt_future": {
        "es": "«{clause}» habla de algo para más tarde. No he hecho nada. Di qué quieres ahora."
        " Si es parte del texto, ponlo entre comillas.",
        "en": "“{clause}” speaks of something for later. I have done nothing. Say what you want now."
        " If it belongs to the text, put the text in quotes.",
    },
    "doubt_irony": {
        "es": "«{clause}» suena a broma. No he hecho nada. Si va en serio, pídelo otra vez sin esa parte.",
        "en": "“{clause}” sounds like a joke. I have done nothing. If you mean it, ask again without that part.",
    },
    "doubt_retraction": {
        "es": "En «{clause}» parece que te retractas de algo. No he hecho nada."
        " Si es parte del texto, ponlo entre comillas; si no, pídelo sin esa parte.",
        "en": "In “{clause}” you seem to take something back. I have done nothing."
        " If it belongs to the text, put the text in quotes; if not, ask again without it.",
    },
    "doubt_announce": {
        "es": "«{clause}» habla de las palabras, no de hacerlo. No he hecho nada."
        " Si quieres que lo haga, pídelo sin rodeos.",
        "en": "“{clause}” speaks of the words, not of doing it. I have done nothing."
        " If you want it done, just ask for it.",
    },
    "doubt_idiom": {
        "es": "«{clause}» puede ser solo una forma de hablar. No he hecho nada. Dilo con otras palabras.",
        "en": "“{clause}” may be just a way of speaking. I have done nothing. Say it in other words.",
    },
    "doubt_question": {
        "es": "«{clause}» suena a pregunta. No he hecho nada."
        " Si quieres que lo haga, pídelo sin el signo de interrogación.",
        "en": "“{clause}” sounds like a question. I have done nothing."
        " If you want it done, ask without the question mark.",
    },
    "doubt_which_file": {
        "es": "En «{clause}» no sé a qué fichero te refieres."
        " Pídelo otra vez con su nombre, por ejemplo: lee notas.txt",
        "en": "In “{clause}” I cannot tell which file you mean. Ask again with its name, for example: read notes.txt",
    },
    "doubt_what_content": {
        "es": "En «{clause}» no sé qué texto quieres. No he hecho nada. Pídelo otra vez con el texto entre comillas.",
        "en": "In “{clause}” I cannot tell which text you mean. I have done nothing."
        " Ask again with the text in quotes.",
    },
    "doubt_copy": {
        "es": "No sé copiar lo que hay en un fichero a otro, y no he hecho nada de «{clause}»."
        " Pídeme que te lea el primero, o dame entre comillas el texto que escribo.",
        "en": "I cannot copy what is in one file to another, and I have done nothing of “{clause}”."
        " Ask me to read you the first one, or give me in quotes the text I am to write.",
    },
    "doubt_beside": {
        "es": "En «{clause}» no sé dónde acaba el texto y dónde empieza lo que quieres que haga con él."
        " No he hecho nada. Pon el texto entre comillas, y lo demás fuera.",
        "en": "In “{clause}” I cannot tell where the text ends and what you want done with it begins."
        " I have done nothing. Put the text in quotes, and the rest outside them.",
    },
    "doubt_which_time": {
        "es": "En «{clause}» no sé con seguridad a qué hora o qué día. No he hecho nada."
        " Dilo de una vez, por ejemplo: recuérdame el lunes a las 9 llamar a Ana",
        "en": "In “{clause}” I am not sure about the day or the time. I have done nothing."
        " Say it in one piece, for example: remind me on Monday at 9 to call Ana",
    },
}

"""Error texts of built-in tools that reach external systems, in Spanish and English, by error code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_agent.ports import Language

TOOL_ERRORS: Final[Mapping[str, Mapping[Language, str]]] = {
    "NOT_A_FOLDER": {"es": "eso no es una carpeta", "en": "that is no folder"},
    "NOTHING_TO_UNDO": {
        "es": "aquí no has cambiado nada que se pueda deshacer; si fue en otra conversación, di el nombre del fichero",
        "en": "you changed nothing here that can be undone; if it was in another conversation, name the file",
    },
    "NOT_NOTED": {
        "es": "no puedo tocar ficheros ahora mismo, y no he cambiado nada; avisa a quien lleva este servicio",
        "en": "I cannot change files at the moment, and I changed nothing; tell whoever runs this service",
    },
    "CHANGED_SINCE": {
        "es": "alguien ha cambiado el fichero después, así que lo dejo como está",
        "en": "somebody else has changed the file since, so I leave it as it is",
    },
    "PATTERN_INVALID": {
        "es": "no es una expresión regular RE2; búscala como texto literal",
        "en": "it is no RE2 expression; search for it literally",
    },
    "TIME_NOT_UNDERSTOOD": {
        "es": "no he entendido cuándo; dímelo como «mañana a las 9», «en 20 minutos» o «2027-03-01 09:00»",
        "en": "I did not understand when; say it as “tomorrow at 9”, “in 20 minutes” or “2027-03-01 09:00”",
    },
    "TIME_PAST": {"es": "ese momento ya ha pasado", "en": "that time is over"},
    "REPEAT_INVALID": {
        "es": "no he entendido cada cuánto; dímelo como «cada lunes a las 9» o «FREQ=WEEKLY;BYDAY=MO»",
        "en": "I did not understand how often; say it as “every monday at 9” or “FREQ=WEEKLY;BYDAY=MO”",
    },
    "TIME_ZONE_UNKNOWN": {
        "es": "no conozco esa zona horaria; dímela como America/Lima",
        "en": "I do not know that time zone; name it as America/Lima",
    },
    "TOO_MANY_REMINDERS": {
        "es": "ya tienes tantos recordatorios como se puede; cancela alguno antes",
        "en": "you have as many reminders as you may; cancel one first",
    },
    "REMINDER_NOT_FOUND": {
        "es": "no tienes ningún recordatorio activo con ese id o ese texto",
        "en": "you have no active reminder with that id or text",
    },
    "REMINDER_AMBIGUOUS": {
        "es": "varios recordatorios dicen eso; cancélalo por su id («¿qué recordatorios tengo?» los muestra)",
        "en": "several reminders say that; cancel it by its id (“what reminders do I have?” shows them)",
    },
    "REMINDERS_UNAVAILABLE": {"es": "aquí nadie guarda recordatorios", "en": "nobody keeps reminders here"},
    "URL_REFUSED": {
        "es": "esa dirección web no es válida o se puede leer de dos maneras",
        "en": "that address is not valid, or can be read in two ways",
    },
    "HOST_NOT_ALLOWED": {
        "es": "ese servidor no está en la lista de los que puedo leer (AGENT_HTTP_ALLOW)",
        "en": "that server is not among those I may read (AGENT_HTTP_ALLOW)",
    },
    "ADDRESS_REFUSED": {
        "es": "ese servidor está en una red privada que no puedo leer",
        "en": "that server is in a private network that I may not read",
    },
    "HTTP_UNREACHABLE": {
        "es": "no se ha podido conectar con ese servidor, o su respuesta se cortó",
        "en": "that server could not be reached, or its answer broke off",
    },
    "HTTP_STATUS": {
        "es": "ese servidor tiene un fallo, o demasiado que hacer, ahora mismo",
        "en": "that server has a fault, or too much to do, right now",
    },
    "HTTP_REFUSED": {
        "es": "ese servidor no tiene esa página, o no la da",
        "en": "that server does not have that page, or does not give it away",
    },
    "TOO_MANY_REDIRECTS": {"es": "la página redirige demasiadas veces", "en": "the page redirects too often"},
    "RESPONSE_TOO_LARGE": {"es": "la página es demasiado grande", "en": "the page is too large"},
    "CONTENT_TYPE_REFUSED": {"es": "lo que hay ahí no es texto", "en": "what is there is no text"},
    "ADDRESS_INVALID": {
        "es": "la dirección de correo o el asunto no son válidos; no se ha enviado nada",
        "en": "the e-mail address or the subject is not valid; nothing was sent",
    },
    "RECIPIENT_REFUSED": {
        "es": "el servidor de correo no acepta ese destinatario; no se ha enviado nada",
        "en": "the mail server does not take that recipient; nothing was sent",
    },
    "MAIL_REFUSED": {
        "es": "el servidor de correo ha rechazado el mensaje; no se ha enviado nada",
        "en": "the mail server refused the message; nothing was sent",
    },
    "MAIL_UNAVAILABLE": {
        "es": "no se puede usar el servidor de correo; no se ha enviado nada",
        "en": "the mail server cannot be used; nothing was sent",
    },
}

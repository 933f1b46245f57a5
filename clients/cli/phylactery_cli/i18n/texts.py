"""Texts of the command, in English and Spanish."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["es", "en"]

_TEXTS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "approve_verb": "APPROVE",
        "undo": "undo the last change",
        "reject_verb": "REJECT",
        "you": "you",
        "agent": "agent",
        "hint": 'Try: read welcome.txt   ·   write "hello" to notes.txt   ·   /help',
        "files": "files the agent may touch",
        "model": "model",
        "model_at": "{model} at {url}",
        "model_fallback": "fallback",
        "model_none": "none: static mode; PHYLACTERY_MODEL_BASE_URL and PHYLACTERY_MODEL name one",
        "single_user": "approvals: one person runs this, so you are asked where a team would ask somebody else",
        "approval": "May I do this?",
        "approvals": "May I do these {count} things?",
        "yes": "yes",
        "no": "no",
        "no_such_number": "There is no such number: I asked about {count}.",
        "no_such_id": "Nothing waits here under that name: {id}.",
        "which": "Several things wait. Say which one, for example /approve {number}:\n{calls}",
        "answer_one_of": "/approve {number}: I do it, once   ·   /reject {number}: I leave it",
        "tool": "tool",
        "risk": "risk",
        "expires": "expires in {minutes} min",
        "answer": "yes (or /approve): I do it, once   ·   no (or /reject): I leave it",
        "answer_several": "yes or /approve: all {count}  ·  no or /reject: none  ·  /approve 1, /reject 2: that one",
        "or_type": "or type: {text}",
        "nothing_waits": "Nothing waits for an answer.",
        "no_turn": "No turn yet: say something first.",
        "no_spans": "No spans of that turn here: the services write them below another data folder.",
        "bye": "Stopping the services …",
        "stopped": "Stopped. Everything is kept in {folder}.",
        "unknown": "No such command: {text}. /help lists them.",
        "elsewhere": "This approval is answered at RiskGate, not here: phylactery approvals show {id}",
        "help": (
            "Say what you want in your own words, for example: read welcome.txt\n"
            "When I ask first, answer yes or no (or /approve, /reject).\n"
            "/undo takes back your last change of a file.\n"
            "Esc or Ctrl-C stops an answer; /quit leaves.\n"
            "More: /help approvals, /help keys, /help language, /help trace"
        ),
        "help_approvals": (
            "A clear yes or no answers the question I just asked; one word more answers nothing.\n"
            "/approve and /reject answer it too when you asked for other things meanwhile.\n"
            "/approve 2 and /reject 2 answer one of several."
        ),
        "help_keys": (
            "While I answer: Esc or Ctrl-C stops it, twice stops waiting. What you type meanwhile is kept.\n"
            "At the prompt: Ctrl-C takes back what you typed; twice leaves, as Ctrl-D and /quit do.\n"
            "While the agent is away what you say is kept and sent once it is back; /drop gives it up."
        ),
        "help_language": (
            "I answer in the language of the conversation, English or Spanish.\n"
            "phylactery run --language es fixes it, and so does the variable PHYLACTERY_LANGUAGE."
        ),
        "help_trace": (
            "/trace draws what happened in the last turn, through the three services.\n"
            "/details shows each step and decision from now on, and hides them the next time."
        ),
        "details_on": "Each step and decision is shown from now on.",
        "details_off": "Only what is said and asked is shown from now on.",
        "fate_died": "{service} has ended by itself; starting it again in {seconds} s. Its log: {log}",
        "fate_back": "{service} is running again.",
        "fate_given_up": "{service} keeps ending by itself, so it is not started again. Its log: {log}",
        "working": "working … {seconds} s · Esc stops",
        "stopping": "stopping …",
        "stops_later": "It stops as soon as it can. Its end is shown here.",
        "leave": "Ctrl-C again leaves; so does /quit.",
        "kept": "Kept ({count}); it is sent as soon as that is possible. /drop gives it up.",
        "dropped": "Given up: {count}. What was on its way already may still be answered.",
        "nothing_kept": "Nothing waits to be sent.",
        "unsent": "Not sent: {count}.",
        "failed": "That did not work: {message}",
        "no_text": "That is not UTF-8 text, so it was not sent.",
        "in_use": "The services of {folder} run already (one at {target}). Talk to them with phylactery chat, or name "
        "another folder with --data-dir and other ports.",
        "late": "The answer takes long. It is shown here as soon as it comes.",
        "away": "The agent does not answer at {target}. Is it running? phylactery up starts it.",
        "erase_confirm": "Erase everything that agent, riskgate and memory hold about {who}, for good?",
        "erase_yourself": "you",
        "erase_counts": "erased: {counts}",
        "erase_values": "erased: the arguments of {erased} entries of its audit log; what was decided stays recorded",
        "erase_nothing": "nothing was left to erase",
        "erase_kept": "the arguments of {count} calls stay while their approval is open; have it answered or withdrawn",
        "erase_proof": "proof: {proof}",
        "erase_failed": "not erased: {why}",
        "erase_not_asked": "not asked, because the agent might still write to it",
        "erase_operator": "only an operator may erase there; have one run: phylactery erase {who}",
        "erase_nameless": "it has to be told your name, which memory did not say; run: phylactery erase YOUR-NAME",
        "erase_away": "nothing answers at {target}",
        "erase_done": "Everything is erased. Files that tools wrote for {who} are not among it.",
        "erase_left": "Not everything is erased. To go on, once that is mended: {command}",
        "runs_none": "No runs.",
        "runs_no_doubt": "Nothing is in doubt.",
        "runs_more": "There is more: --page {token}",
        "graphs_columns": "graph,default,version,how it works",
        "runs_columns": "run,status,reason,thread,began",
        "runs_call_columns": "run,tool call,tool,state,thread,proposed",
        "runs_step_columns": "step,status,tries,what",
        "runs_node_columns": "superstep,node,ms,goes to,tool call,stops with",
        "runs_event_columns": "event,time,what",
        "runs_budget_columns": "budget,used,limit",
        "runs_budgets": "supersteps,tool calls,model calls,tokens,money (millionths),active seconds",
        "runs_no_limit": "none",
        "runs_retry_of": "Begins {id} once more.",
        "runs_effects": "Done before, and not known to the new run:",
        "runs_retry_effects": "what it did may happen a second time ({calls}). Look at: phylactery runs show {id}. "
        "Then, if you want that: phylactery runs retry {id} --acknowledge-effects",
        "runs_retry_NOT_FAILED": "only a run that failed begins once more: {id} did not",
        "runs_retry_RETRIED": "{id} was already retried; see: phylactery runs list",
        "runs_retry_WORDS_GONE": "the words of {id} are not kept any more; say them again",
        "runs_retry_NO_TOOLS": "{id} began with other tools than you may use; ask as whoever began it",
        "runs_retry_THREAD_BUSY": "its conversation is serving something else; let that end, or cancel it",
        "runs_doubt_hint": "To settle one: phylactery runs resolve RUN CALL --happened or --did-not-happen",
        "runs_confirm": "Cancel {id} for good?",
        "runs_which": "say what became of it: --happened or --did-not-happen",
        "runs_settled": "{id}: {state} ({resolution})",
        "tools_columns": "tool,state,risk,effect,source,what it does",
        "tools_on": "on",
        "tools_on_unchecked": "on, unchecked",
        "pin_new": "NEW {name}, which its server calls {tool}:",
        "pin_changed": "CHANGED {name}, which its server calls {tool}:",
        "pin_gone": "GONE {name}, which its server called {tool}:",
        "pin_same": "Every tool is as it was pinned.",
        "pin_confirm": "A model will read these descriptions. Pin the tools as they are shown?",
        "pin_done": "{count} tools are pinned in {file}. An agent that runs reads them when it starts again.",
        "pin_unusable": "{server}: {tool} cannot be pinned: {why}",
        "tools_unchecked": "RiskGate has not said yet what its catalog holds; it compares at each call.",
        "service_away": "nothing answers at {target}; phylactery up starts the services",
        "threads_none": "No conversations.",
        "threads_columns": "conversation,state,graph,events,opened,last event",
        "threads_confirm": "Delete {id} and everything kept of it, for good?",
        "threads_deleted": "Deleted: {id}",
        "memory_none": "Nothing is remembered.",
        "memory_no_match": "Nothing remembered fits.",
        "memory_no_outputs": "No outputs are kept.",
        "memory_no_profile": "The profile is empty.",
        "memory_more": "There is more: --page {token}",
        "memory_forgotten": "Forgotten: {id}",
        "memory_untrusted": "[from a tool or the web] {text}",
        "memory_confirm": "Erase everything memory holds about {who}, for good?",
        "memory_yourself": "you",
        "unchanged": "Nothing was changed.",
        "memory_erased": "Erased. {counts}",
        "memory_exported": "{count} records in {file}",
        "memory_broken": "the export broke off; what was written is not all there is. Try again",
        "memory_no_file": "the export broke off, so there is no {file}. Try again",
        "memory_broken_outputs": "damaged, so nothing else is known of them; restore a backup: {pointers}",
        "memory_bad_value": "--set takes name=value, for example --set city=Lima; '{text}' is none",
        "memory_columns": "memory,kind,trust,since,until,text",
        "memory_profile_columns": "name,value,said by,since,until,memory",
        "memory_output_columns": "output,tool,characters,thread,created",
        "memory_read_output": "To read one, say in the chat: read output {pointer} from 0 to 4000",
        "memory_bad_query": "say what to look for, in at most 2,000 characters: phylactery memory search tea",
        "memory_bad_id": "a memory's id looks like mem_…; phylactery memory list shows yours",
        "memory_not_found": "you have no memory {id}; phylactery memory list shows yours",
        "memory_bad_name": "a name begins with a small letter and goes on with small letters, digits, _ and .: city",
        "memory_bad_text": "a value is one line of 1 to 500 characters; --remove takes a name away",
        "memory_bad_page": "that page is not one this command named; start again without --page",
        "memory_bad_user": "a user's name holds letters, digits and _.:@-, at most 128 of them",
        "memory_file_exists": "{file} is there already; name a new file",
        "memory_erase_rest": "The agent and riskgate keep what they hold; phylactery erase covers all three.",
        "approval_fields": "approval,state,tool,risk,class,requester,thread,expires",
        "approval_columns": "approval,state,tool,risk,class,requester,expires",
        "approval_marked": "unprintable or look-alike characters are marked",
        "approval_cut": "{count} characters are not shown; all of them: phylactery approvals show {id} --full",
        "approval_cut_in_full": "{count} characters are more than can be shown: do not approve what you have not seen",
        "approval_nothing": "Nothing waits.",
        "approval_none": "None.",
        "approval_closed": "{id} is {state} already; only a PENDING one can be answered",
        "approval_json_yes": "for machines nobody is asked: phylactery approvals show it first, then add --yes",
        "approval_confirm": "Approve exactly this, once?",
        "origin_USER": "the user's own words",
        "origin_REGISTRY": "a registry",
        "origin_POINTED": "text the user pointed to",
        "origin_FOREIGN": "other text, or nowhere",
        "yes_words": "y,yes",
        "yes_no": "{question} [y/N]: ",
    },
    "es": {
        "approve_verb": "APROBAR",
        "undo": "deshaz el último cambio",
        "reject_verb": "RECHAZAR",
        "you": "tú",
        "agent": "agente",
        "hint": 'Prueba: lee welcome.txt   ·   escribe "hola" en notas.txt   ·   /help',
        "files": "archivos que el agente puede tocar",
        "model": "modelo",
        "model_at": "{model} en {url}",
        "model_fallback": "reserva",
        "model_none": "ninguno: modo estático; PHYLACTERY_MODEL_BASE_URL y PHYLACTERY_MODEL nombran uno",
        "single_user": "aprobaciones: esto lo lleva una sola persona; se te pregunta a ti lo que en un equipo a otra",
        "approval": "¿Puedo hacer esto?",
        "approvals": "¿Puedo hacer estas {count} cosas?",
        "yes": "sí",
        "no": "no",
        "no_such_number": "Ese número no existe: he preguntado por {count}.",
        "no_such_id": "Aquí no espera nada con ese nombre: {id}.",
        "which": "Esperan varias cosas. Di cuál, por ejemplo /approve {number}:\n{calls}",
        "answer_one_of": "/approve {number}: lo hago, una vez   ·   /reject {number}: lo dejo",
        "tool": "herramienta",
        "risk": "riesgo",
        "expires": "caduca en {minutes} min",
        "answer": "sí (o /approve): lo hago, una vez   ·   no (o /reject): lo dejo",
        "answer_several": "sí o /approve: las {count}  ·  no o /reject: ninguna  ·  /approve 1, /reject 2: solo esa",
        "or_type": "o escribe: {text}",
        "nothing_waits": "Nada espera una respuesta.",
        "no_turn": "Todavía no hay ningún turno: di algo primero.",
        "no_spans": "Aquí no hay spans de ese turno: los servicios los escriben en otra carpeta de datos.",
        "bye": "Deteniendo los servicios …",
        "stopped": "Detenido. Todo queda guardado en {folder}.",
        "unknown": "No existe la orden {text}. /help las enumera.",
        "elsewhere": "Esta aprobación se responde en RiskGate, no aquí: phylactery approvals show {id}",
        "help": (
            "Di con tus palabras lo que quieres, por ejemplo: lee welcome.txt\n"
            "Cuando pregunte antes de hacer algo, responde sí o no (o /approve, /reject).\n"
            "/undo deshace tu último cambio en un archivo.\n"
            "Esc o Ctrl-C detiene una respuesta; /quit sale.\n"
            "Más: /help approvals, /help keys, /help language, /help trace"
        ),
        "help_approvals": (
            "Un sí o un no claro responde a lo que acabo de preguntar; con una palabra más no responde a nada.\n"
            "/approve y /reject responden también si entretanto pediste otras cosas.\n"
            "/approve 2 y /reject 2 responden a una sola de varias."
        ),
        "help_keys": (
            "Mientras respondo: Esc o Ctrl-C lo detiene; dos veces deja de esperar. Lo que escribas entretanto queda.\n"
            "Al escribir: Ctrl-C borra lo escrito; dos veces sale, como Ctrl-D y /quit.\n"
            "Si el agente no está, lo que digas se guarda y se envía cuando vuelva; /drop lo descarta."
        ),
        "help_language": (
            "Respondo en el idioma de la conversación, español o inglés.\n"
            "phylactery run --language es lo fija, y también la variable PHYLACTERY_LANGUAGE."
        ),
        "help_trace": (
            "/trace dibuja lo que pasó en el último turno, a través de los tres servicios.\n"
            "/details muestra desde ahora cada paso y cada decisión, y otra vez los oculta."
        ),
        "details_on": "Desde ahora se muestra cada paso y cada decisión.",
        "details_off": "Desde ahora solo se muestra lo que se dice y se pregunta.",
        "fate_died": "{service} ha terminado por sí solo; vuelve a arrancar en {seconds} s. Su registro: {log}",
        "fate_back": "{service} funciona de nuevo.",
        "fate_given_up": "{service} termina por sí solo una y otra vez; no se arranca más. Su registro: {log}",
        "working": "trabajando … {seconds} s · Esc lo detiene",
        "stopping": "deteniendo …",
        "stops_later": "Parará en cuanto pueda. Aquí verás cómo acaba.",
        "leave": "Otra vez Ctrl-C para salir; /quit también sale.",
        "kept": "Guardado ({count}); se envía en cuanto sea posible. /drop lo descarta.",
        "dropped": "Descartado: {count}. Lo que ya estaba en camino aún puede recibir respuesta.",
        "nothing_kept": "No hay nada por enviar.",
        "unsent": "Sin enviar: {count}.",
        "failed": "No ha funcionado: {message}",
        "no_text": "Eso no es texto UTF-8, así que no se ha enviado.",
        "in_use": "Los servicios de {folder} ya están en marcha (uno en {target}). Habla con ellos: phylactery chat, "
        "o nombra otra carpeta con --data-dir y otros puertos.",
        "late": "La respuesta tarda. Se muestra aquí en cuanto llegue.",
        "away": "El agente no responde en {target}. ¿Está en marcha? phylactery up lo arranca.",
        "erase_confirm": "¿Borrar para siempre todo lo que agent, riskgate y memory guardan de {who}?",
        "erase_yourself": "ti",
        "erase_counts": "borrado: {counts}",
        "erase_values": "borrado: los argumentos de {erased} entradas de su registro; lo que se decidió sigue anotado",
        "erase_nothing": "no quedaba nada que borrar",
        "erase_kept": "los argumentos de {count} llamadas quedan mientras su aprobación esté abierta; que se responda o"
        " se retire",
        "erase_proof": "prueba: {proof}",
        "erase_failed": "no se ha borrado: {why}",
        "erase_not_asked": "no se le ha pedido, porque el agente aún podría escribir en él",
        "erase_operator": "allí solo borra un operador; haz que uno ejecute: phylactery erase {who}",
        "erase_nameless": "hay que darle tu nombre, y memory no lo ha dicho; ejecuta: phylactery erase TU-NOMBRE",
        "erase_away": "nada responde en {target}",
        "erase_done": "Está todo borrado. Los archivos que las herramientas escribieron para {who} no entran en ello.",
        "erase_left": "No está todo borrado. Para seguir, cuando eso se arregle: {command}",
        "runs_none": "No hay ejecuciones.",
        "runs_no_doubt": "Nada está en duda.",
        "runs_more": "Hay más: --page {token}",
        "graphs_columns": "grafo,por defecto,versión,cómo trabaja",
        "runs_columns": "ejecución,estado,motivo,conversación,empezó",
        "runs_call_columns": "ejecución,llamada,herramienta,estado,conversación,propuesta",
        "runs_step_columns": "paso,estado,intentos,qué",
        "runs_node_columns": "superpaso,nodo,ms,sigue en,llamada,acaba con",
        "runs_event_columns": "evento,hora,qué",
        "runs_budget_columns": "presupuesto,usado,límite",
        "runs_budgets": "superpasos,llamadas a herramientas,llamadas al modelo,tokens,dinero (millonésimas),"
        "segundos activos",
        "runs_no_limit": "ninguno",
        "runs_retry_of": "Repite {id}.",
        "runs_effects": "Hecho antes, y desconocido para la nueva ejecución:",
        "runs_retry_effects": "lo que hizo puede ocurrir otra vez ({calls}). Míralo: phylactery runs show {id}. "
        "Después, si eso quieres: phylactery runs retry {id} --acknowledge-effects",
        "runs_retry_NOT_FAILED": "solo se repite una ejecución que falló: {id} no falló",
        "runs_retry_RETRIED": "{id} ya se repitió; mira: phylactery runs list",
        "runs_retry_WORDS_GONE": "las palabras de {id} ya no se guardan; dilas de nuevo",
        "runs_retry_NO_TOOLS": "{id} empezó con otras herramientas que las tuyas; pídelo como quien la empezó",
        "runs_retry_THREAD_BUSY": "su conversación atiende otra cosa; deja que acabe, o cancélala",
        "runs_doubt_hint": "Para resolver una: phylactery runs resolve EJECUCIÓN LLAMADA --happened o --did-not-happen",
        "runs_confirm": "¿Cancelar {id} para siempre?",
        "runs_which": "di qué pasó: --happened (ocurrió) o --did-not-happen (no ocurrió)",
        "runs_settled": "{id}: {state} ({resolution})",
        "tools_columns": "herramienta,estado,riesgo,efecto,origen,qué hace",
        "tools_on": "activa",
        "tools_on_unchecked": "activa, sin comprobar",
        "pin_new": "NUEVA {name}, que su servidor llama {tool}:",
        "pin_changed": "CAMBIADA {name}, que su servidor llama {tool}:",
        "pin_gone": "YA NO ESTÁ {name}, que su servidor llamaba {tool}:",
        "pin_same": "Todas las herramientas están como se fijaron.",
        "pin_confirm": "Un modelo leerá estas descripciones. ¿Fijar las herramientas como se muestran?",
        "pin_done": "{count} herramientas quedan fijadas en {file}. Un agente en marcha las lee al arrancar de nuevo.",
        "pin_unusable": "{server}: {tool} no se puede fijar: {why}",
        "tools_unchecked": "RiskGate aún no ha dicho qué hay en su catálogo; compara en cada llamada.",
        "service_away": "nada responde en {target}; phylactery up arranca los servicios",
        "threads_none": "No hay conversaciones.",
        "threads_columns": "conversación,estado,grafo,eventos,abierta,último evento",
        "threads_confirm": "¿Borrar {id} y todo lo que se guarda de ella, para siempre?",
        "threads_deleted": "Borrada: {id}",
        "memory_none": "No se recuerda nada.",
        "memory_no_match": "Nada de lo que se recuerda encaja.",
        "memory_no_outputs": "No hay salidas guardadas.",
        "memory_no_profile": "El perfil está vacío.",
        "memory_more": "Hay más: --page {token}",
        "memory_forgotten": "Olvidado: {id}",
        "memory_untrusted": "[de una herramienta o de la web] {text}",
        "memory_confirm": "¿Borrar para siempre todo lo que memory guarda de {who}?",
        "memory_yourself": "ti",
        "unchanged": "No se cambió nada.",
        "memory_erased": "Borrado. {counts}",
        "memory_exported": "{count} registros en {file}",
        "memory_broken": "la exportación se interrumpió; lo escrito no es todo lo que hay. Inténtalo de nuevo",
        "memory_no_file": "la exportación se interrumpió, así que no hay {file}. Inténtalo de nuevo",
        "memory_broken_outputs": "dañadas, así que no se sabe más de ellas; restaura una copia: {pointers}",
        "memory_bad_value": "--set espera nombre=valor, por ejemplo --set city=Lima; '{text}' no lo es",
        "memory_columns": "recuerdo,tipo,confianza,desde,hasta,texto",
        "memory_profile_columns": "nombre,valor,lo dijo,desde,hasta,recuerdo",
        "memory_output_columns": "salida,herramienta,caracteres,conversación,creada",
        "memory_read_output": "Para leer una, di en el chat: lee la salida {pointer} desde 0 hasta 4000",
        "memory_bad_query": "di qué buscar, en 2000 caracteres como mucho: phylactery memory search té",
        "memory_bad_id": "el id de un recuerdo es como mem_…; phylactery memory list muestra los tuyos",
        "memory_not_found": "no tienes ningún recuerdo {id}; phylactery memory list muestra los tuyos",
        "memory_bad_name": "un nombre empieza por minúscula y sigue con minúsculas, cifras, _ y .: city",
        "memory_bad_text": "un valor es una línea de 1 a 500 caracteres; --remove quita un nombre",
        "memory_bad_page": "esa página no la nombró esta orden; empieza de nuevo sin --page",
        "memory_bad_user": "el nombre de un usuario lleva letras, cifras y _.:@-, 128 como mucho",
        "memory_file_exists": "{file} ya existe; nombra un archivo nuevo",
        "memory_erase_rest": "agent y riskgate conservan lo suyo; phylactery erase abarca los tres.",
        "approval_fields": "aprobación,estado,herramienta,riesgo,clase,solicitante,conversación,caduca",
        "approval_columns": "aprobación,estado,herramienta,riesgo,clase,solicitante,caduca",
        "approval_marked": "van marcados los caracteres que no se imprimen o imitan a otros",
        "approval_cut": "{count} caracteres sin mostrar; todos: phylactery approvals show {id} --full",
        "approval_cut_in_full": "{count} caracteres no caben: no apruebes lo que no has visto",
        "approval_nothing": "Nada espera.",
        "approval_none": "Ninguna.",
        "approval_closed": "{id} ya está {state}; solo se responde a una PENDIENTE",
        "approval_json_yes": "para máquinas no se pregunta: míralo con phylactery approvals show y añade --yes",
        "approval_confirm": "¿Aprobar exactamente esto, una vez?",
        "origin_USER": "palabras del propio usuario",
        "origin_REGISTRY": "un registro",
        "origin_POINTED": "un texto que el usuario señaló",
        "origin_FOREIGN": "otro texto, o ninguna parte",
        "yes_words": "s,si,sí,y,yes",
        "yes_no": "{question} [s/N]: ",
    },
}


_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {},
    "es": {
        "FACT": "hecho",
        "PREFERENCE": "preferencia",
        "EPISODE": "episodio",
        "USER": "persona",
        "ASSISTANT": "agente",
        "TOOL": "herramienta",
        "WEB": "web",
        "SYSTEM": "operador",
        "UNTRUSTED": "ninguna",
        "PENDING": "PENDIENTE",
        "APPROVED": "APROBADA",
        "REDEEMED": "USADA",
        "REJECTED": "RECHAZADA",
        "EXPIRED": "CADUCADA",
        "CANCELLED": "RETIRADA",
        "LOW": "BAJO",
        "MEDIUM": "MEDIO",
        "HIGH": "ALTO",
        "CRITICAL": "CRÍTICO",
    },
}
"""Display texts of contract words that are not shown unchanged; memory's are in lower case."""


def preferred_language() -> Language:
    """Return 'es' or 'en' by the terminal's locale."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "es" if locale.lower().startswith("es") else "en"


class Texts:
    """The texts of one language."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._texts, self._words = _TEXTS[language], _WORDS[language]

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its values filled in."""
        return self._texts[key].format(**values) if values else self._texts[key]

    def help(self, topic: str) -> str:
        """Return the help on a topic, or the short overview for an unknown one."""
        return self._texts.get(f"help_{topic}", self._texts["help"])

    def columns(self, key: str) -> tuple[str, ...]:
        """Return a table's column headers."""
        return tuple(self._texts[key].split(","))

    def word(self, word: str) -> str:
        """Return the display text of a word of memory's contract."""
        return self._words.get(word, word.lower())

    def as_it_stands(self, word: str) -> str:
        """Return the display text of a word of RiskGate's contract."""
        return self._words.get(word, word)

"""The agent's texts in Spanish and English. Every key exists in both languages; a test checks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from phylactery_agent.i18n.doubts import DOUBT_TEXTS
from phylactery_agent.i18n.model_texts import MODEL_ERRORS, MODEL_TEXTS, REACT_TEXTS
from phylactery_agent.i18n.tool_texts import TOOL_ERRORS
from phylactery_agent.ports import Asked, Language
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import TOOL_REGISTRY, source_of

TEXTS: Final[Mapping[str, Mapping[Language, str]]] = {
    **MODEL_TEXTS,
    **REACT_TEXTS,
    **DOUBT_TEXTS,
    "greeting": {"es": "¡Hola! ¿En qué te ayudo?", "en": "Hello! How can I help?"},
    "greeting_by_name": {"es": "¡Hola, {name}! ¿En qué te ayudo?", "en": "Hello, {name}! How can I help?"},
    "memory_degraded": {
        "es": "(La memoria no responde: te contesto sin la conversación anterior ni lo que recuerdo de ti. No se ha"
        " perdido nada.)",
        "en": "(Memory does not answer: I am answering without the conversation so far and what I remember about you."
        " Nothing is lost.)",
    },
    "thanks": {"es": "De nada.", "en": "You're welcome."},
    "farewell": {"es": "¡Hasta luego!", "en": "Goodbye!"},
    "empty": {"es": "No me ha llegado ningún texto.", "en": "No text reached me."},
    "fine": {"es": "Muy bien.", "en": "Fine."},
    "dropped": {
        "es": "De acuerdo, lo dejo así. Si quieres deshacer mi último cambio en un fichero, di «deshazlo».",
        "en": "All right, I leave it at that. To take back my last change of a file, say “undo”.",
    },
    "cannot_files": {
        "es": "No sé borrar, vaciar, copiar, mover ni cambiar de nombre los ficheros, y no he hecho nada. Sí puedo"
        " leerlos, escribirlos, añadirles líneas y deshacer mi último cambio.",
        "en": "I can't delete, empty, copy, move or rename files, and I have done nothing. I can read and write them,"
        " add lines to them, and undo my last change.",
    },
    "told_of_oneself": {
        "es": "Gracias por contármelo. Para estar seguro de que lo recuerdo, dímelo así: recuerda que {clause}",
        "en": "Thanks for telling me. To be sure that I remember it, say: remember that {clause}",
    },
    "program": {
        "es": "Soy un programa: leo y escribo ficheros, te aviso a la hora que digas y recuerdo lo que me pides.",
        "en": "I'm a program: I read and write files, remind you of things and remember what you ask me to.",
    },
    "time": {
        "es": "Es {weekday}, {date}, y son las {clock} ({zone}).",
        "en": "It is {weekday}, {date}, {clock} ({zone}).",
    },
    "help": {"es": "Puedo hacer esto:\n{tools}", "en": "I can do this:\n{tools}"},
    "unknown": {
        "es": "No he entendido «{clause}»; «ayuda» muestra lo que puedo hacer.",
        "en": "I didn't get “{clause}”; “help” shows what I can do.",
    },
    "tool_off": {
        "es": "Aquí no puedo {tool}. (Para quien lleva el servicio: {why}.)",
        "en": "I can't {tool} here. (For the operator: {why}.)",
    },
    "off_NOT_CONFIGURED": {"es": "define {setting}", "en": "set {setting}"},
    "off_NOT_PINNED": {
        "es": "nadie ha aceptado todavía esta herramienta, véase «phylactery tools list»",
        "en": "nobody has agreed to this tool yet, see “phylactery tools list”",
    },
    "off_DESCRIPTION_CHANGED": {
        "es": "la herramienta ya no es como se aceptó, véase «phylactery tools list»",
        "en": "the tool is not as it was agreed to, see “phylactery tools list”",
    },
    "off_NOT_IN_CATALOG": {
        "es": "el catálogo de RiskGate no tiene esta herramienta",
        "en": "RiskGate's catalog does not have this tool",
    },
    "off_SCHEMA_DIFFERS": {
        "es": "el catálogo de RiskGate tiene otro esquema de esta herramienta",
        "en": "RiskGate's catalog has another schema of this tool",
    },
    "off_SERVER_UNAVAILABLE": {
        "es": "el servidor de la herramienta no está, o ya no la ofrece",
        "en": "the tool's server is away, or no longer offers it",
    },
    "result": {"es": "{label}\n{output}", "en": "{label}\n{output}"},
    "result_cut": {
        "es": "{output}…\n(Hay {more} caracteres más; la memoria no ha podido guardarlos aparte.)",
        "en": "{output}…\n({more} characters more; memory could not keep them aside.)",
    },
    "result_kept": {
        "es": "(El resultado ya lo guarda la memoria.)",
        "en": "(Memory keeps the result already.)",
    },
    "evicted": {
        "es": "{label}\nEs un texto largo, que guardo entero. Empieza así:\n{head}\n…\nTermina así:\n{tail}\n"
        "Para leer más: lee la salida {pointer} desde 0 hasta 4000",
        "en": "{label}\nIt is a long text, which I keep whole. It starts:\n{head}\n…\nIt ends:\n{tail}\n"
        "To read more: read output {pointer} from 0 to 4000",
    },
    "step_blocked": {"es": "No lo he hecho: {reasons}", "en": "Not done: {reasons}"},
    "step_failed": {
        "es": "No he podido completar «{step}»: {error}",
        "en": "I could not complete “{step}”: {error}",
    },
    "step_failed_again": {
        "es": "No he podido completar «{step}» en {tries} intentos: {error}",
        "en": "I could not complete “{step}” in {tries} attempts: {error}",
    },
    "use": {"es": "usar «{name}»", "en": "use “{name}”"},
    "use_tool": {"es": "usar «{name}» de {source}", "en": "use “{name}” from {source}"},
    "tool_said": {"es": "{who} dijo: «{said}»", "en": "{who} said: “{said}”"},
    "ask_help": {
        "es": "¿Qué prefieres que haga? Puedes darme otra instrucción.",
        "en": "What would you like me to do? You can give me another instruction.",
    },
    "not_done": {"es": "Queda sin hacer: {steps}", "en": "Not done: {steps}"},
    "approval_required": {"es": "¿Puedo {tools}? Responde sí o no.", "en": "May I {tools}? Answer yes or no."},
    "approvals_required": {
        "es": "¿Puedo hacer estas {count} cosas: {tools}? Responde sí o no.",
        "en": "May I do these {count} things: {tools}? Answer yes or no.",
    },
    "approval_required_other": {
        "es": "Para {tools} hace falta que otra persona lo apruebe; sigo cuando responda. Con /reject lo retiras.",
        "en": "To {tools}, another person has to approve it; I go on when they answer. You can take it back with"
        " /reject.",
    },
    "waits_one": {
        "es": "Aún espero tu respuesta: ¿puedo {tools}? (/approve o /reject)",
        "en": "I still need your answer: may I {tools}? (/approve or /reject)",
    },
    "waits_several": {
        "es": "{count} acciones esperan tu respuesta: {tools}. (/approve o /reject)",
        "en": "{count} actions wait for your answer: {tools}. (/approve or /reject)",
    },
    "waits_other_one": {
        "es": "Otra persona aún tiene que aprobar esto: {tools}. (/reject lo retira)",
        "en": "Another person still has to approve this: {tools}. (/reject takes it back)",
    },
    "waits_other_several": {
        "es": "Otra persona aún tiene que aprobar {count} acciones: {tools}. (/reject las retira)",
        "en": "Another person still has to approve {count} actions: {tools}. (/reject takes them back)",
    },
    "waits_unnamed": {"es": "hacer lo que te pregunté", "en": "do what I asked you about"},
    "answer_to_nothing": {
        "es": "No está claro a qué respondes, así que no he cambiado nada.",
        "en": "It is not clear what that answers, so I changed nothing.",
    },
    "too_many_wait": {
        "es": "Aquí ya esperan demasiadas cosas, así que no he empezado esto: responde antes a alguna.",
        "en": "Too many things wait here already, so I did not begin this: answer one of them first.",
    },
    "still_pending": {
        "es": "Aún nadie ha respondido si puedo {tool}.",
        "en": "Nobody has answered yet whether I may {tool}.",
    },
    "code_missing": {
        "es": "Se ha perdido el código de tu respuesta. Envíala otra vez, por favor.",
        "en": "The code of your answer got lost. Please send it again.",
    },
    "code_wrong": {
        "es": "El código no es correcto. Te quedan {left} intentos; o responde /reject.",
        "en": "The code is wrong. {left} tries left; or answer /reject.",
    },
    "code_wrong_once": {
        "es": "El código no es correcto. Te queda 1 intento; o responde /reject.",
        "en": "The code is wrong. 1 try left; or answer /reject.",
    },
    "approval_wrong_id": {
        "es": "{given} no espera tu respuesta ({why}), así que no he cambiado nada.",
        "en": "{given} does not wait for your answer ({why}), so I changed nothing.",
    },
    "ahead_approved": {
        "es": "Anotado: puedo {tool}.",
        "en": "Noted: I may {tool}.",
    },
    "ahead_rejected": {
        "es": "Anotado: no voy a {tool}.",
        "en": "Noted: I will not {tool}.",
    },
    "approval_refused": {
        "es": "Esa respuesta no vale: {why}.",
        "en": "That answer does not count: {why}.",
    },
    "nothing_waits": {
        "es": "Aquí no espera nada tu respuesta: {given} {why}.",
        "en": "Nothing waits for your answer here: {given} {why}.",
    },
    "nothing_waits_at_all": {
        "es": "Aquí no espera nada tu respuesta.",
        "en": "Nothing waits for your answer here.",
    },
    "rejected": {
        "es": "De acuerdo, no lo hago.",
        "en": "All right, I won't.",
    },
    "cancelled": {
        "es": "Eso se ha cancelado y no lo he hecho.",
        "en": "That was cancelled, and I did not do it.",
    },
    "expired": {
        "es": "Nadie respondió a tiempo, así que no lo he hecho. Pídemelo otra vez si hace falta.",
        "en": "Nobody answered in time, so I did not do it. Ask me again if you still need it.",
    },
    "gate_unavailable": {
        "es": "No puedo comprobar ahora si puedo hacerlo, así que no lo he hecho. Pídemelo otra vez dentro de un"
        " momento.",
        "en": "I cannot check right now whether I may do that, so I did not do it. Ask me again in a moment.",
    },
    "gate_unavailable_waiting": {
        "es": "No puedo comprobar ahora tu respuesta, así que no he hecho nada. Sigo esperándola: responde otra vez"
        " dentro de un momento.",
        "en": "I cannot check your answer right now, so I did nothing. I am still waiting for it: answer again in a"
        " moment.",
    },
    "effect_in_doubt": {
        "es": "No puedo saber si llegué a {tool}, así que no lo repito: compruébalo, por favor.",
        "en": "I set out to {tool} and cannot tell whether that was done, so I do not do it again: please check.",
    },
    "step_limit": {
        "es": "Es más de lo que puedo hacer de una vez. Escribe «continúa» para seguir.",
        "en": "That is more than I can do at once. Say “continue” to go on.",
    },
    "tool_limit": {
        "es": "He parado: ya he hecho {limit} cosas seguidas, y no puedo hacer más de una vez. Pídeme el resto aparte.",
        "en": "I stopped: I did {limit} things in a row, and cannot do more at once. Ask me for the rest by itself.",
    },
    "too_many_steps": {
        "es": "Son demasiados pasos de una vez; pídeme como mucho {limit}. No he hecho ninguno.",
        "en": "Those are too many steps at once; ask for at most {limit}. I did none of them.",
    },
    "nothing_to_do": {"es": "No queda nada por hacer.", "en": "There is nothing left to do."},
    "state_PENDING": {"es": "está pendiente en otro lugar", "en": "is waiting elsewhere"},
    "state_APPROVED": {"es": "ya está aprobada", "en": "is approved already"},
    "state_REDEEMED": {"es": "ya se usó una vez", "en": "was already used once"},
    "state_REJECTED": {"es": "fue rechazada", "en": "was rejected"},
    "state_EXPIRED": {"es": "ha caducado", "en": "has expired"},
    "state_CANCELLED": {"es": "fue anulada", "en": "was cancelled"},
    "state_UNKNOWN": {"es": "no existe para ti", "en": "does not exist for you"},
    "state_UNASKED": {"es": "no se puede consultar ahora", "en": "cannot be looked up now"},
    "risk_low": {"es": "bajo", "en": "low"},
    "risk_medium": {"es": "medio", "en": "medium"},
    "risk_high": {"es": "alto", "en": "high"},
    "risk_critical": {"es": "crítico", "en": "critical"},
}

ERRORS: Final[Mapping[str, Mapping[Language, str]]] = {
    **MODEL_ERRORS,
    **TOOL_ERRORS,
    "NOT_FOUND": {"es": "no existe ese fichero o carpeta", "en": "there is no such file or folder"},
    "NOT_A_FILE": {"es": "la ruta no es un fichero", "en": "the path is not a file"},
    "NOT_UTF8": {"es": "no es texto UTF-8", "en": "it is not UTF-8 text"},
    "FILE_TOO_LARGE": {"es": "el fichero es demasiado grande", "en": "the file is too large"},
    "PATH_INVALID": {"es": "la ruta no es válida", "en": "the path is not valid"},
    "PATH_OUTSIDE_SANDBOX": {
        "es": "la ruta sale de la carpeta de trabajo",
        "en": "the path leaves the working folder",
    },
    "ACCESS_DENIED": {"es": "el sistema niega el acceso", "en": "the system denies access"},
    "IO_ERROR": {"es": "el disco ha dado un error", "en": "the disk reported an error"},
    "SERVER_UNAVAILABLE": {
        "es": "el servidor de esta herramienta no está disponible ahora",
        "en": "the server of this tool is not available at present",
    },
    "SERVER_BUSY": {
        "es": "el servidor de esta herramienta tiene demasiado trabajo",
        "en": "the server of this tool has too much to do",
    },
    "CALL_REFUSED": {
        "es": "el servidor de esta herramienta no admitió la llamada",
        "en": "the server of this tool did not take the call",
    },
    "TIMEOUT": {"es": "ha tardado demasiado", "en": "it took too long"},
    "TOOL_ERROR": {
        "es": "el servicio al que he preguntado dice que ha fallado",
        "en": "the service I asked says that it failed",
    },
    "TOOL_FAILED": {"es": "la herramienta ha fallado", "en": "the tool failed"},
    "MEMORY_UNAVAILABLE": {"es": "la memoria no responde", "en": "the memory service does not answer"},
    "SECRET_PASSWORD": {"es": "no guardo contraseñas ni PIN", "en": "I keep no passwords and no PINs"},
    "SECRET_CARD": {"es": "no guardo números de tarjeta ni de cuenta", "en": "I keep no card or account numbers"},
    "SECRET_KEY": {"es": "no guardo claves de acceso ni tokens", "en": "I keep no keys and no tokens"},
    "MEMORY_LIMIT": {
        "es": "ya guardo tantos recuerdos tuyos como puedo; haz que olvide alguno antes",
        "en": "I keep as many of your memories as I can; have me forget some first",
    },
    "OUTPUT_NOT_FOUND": {"es": "no existe esa salida", "en": "there is no such output"},
    "OUTPUT_NOT_REHYDRATABLE": {
        "es": "es demasiado larga para recuperarla entera; léela por tramos o busca en ella",
        "en": "it is too long to be brought back whole; read it in parts or search it",
    },
    "RANGE_PAST_END": {"es": "el tramo empieza pasado el final", "en": "the range starts past the end"},
    "TOO_MANY_PENDING": {
        "es": "ya hay demasiadas aprobaciones en espera; responde antes esas",
        "en": "too many approvals wait already; answer those first",
    },
    "TOO_MANY_ASKED": {
        "es": "ya se han pedido demasiadas aprobaciones en una hora; espera un poco",
        "en": "too many approvals were asked for within the hour; wait a while",
    },
    "REJECTED_BEFORE": {
        "es": "una persona acaba de rechazar justo esto, así que no se le pregunta otra vez",
        "en": "a person has just rejected exactly this, and is not asked again",
    },
    "APPROVER_NOT_ELIGIBLE": {
        "es": "quien lo aprobó ya no puede aprobarlo",
        "en": "whoever approved it may not approve it any more",
    },
    "APPROVAL_EXPIRED": {"es": "la aprobación ha caducado", "en": "the approval has expired"},
    "APPROVAL_NOT_PENDING": {"es": "la aprobación ya no vale", "en": "the approval no longer holds"},
    "UNKNOWN_TOOL": {"es": "no conozco esa herramienta", "en": "I do not know that tool"},
    "INVALID_REQUEST": {"es": "el servicio no admite esos valores", "en": "the service does not take those values"},
    "INVALID_ARGUMENTS": {"es": "los argumentos no encajan", "en": "the arguments do not fit"},
    "TOOL_NOT_ALLOWED": {
        "es": "tu sesión no puede usar esta herramienta",
        "en": "your session may not use this tool",
    },
    "TOOL_DISABLED": {
        "es": "esta herramienta está desactivada ahora; `phylactery tools list` dice por qué",
        "en": "this tool is switched off at present; `phylactery tools list` says why",
    },
    "RECEIPT_REFUSED": {
        "es": "el recibo de RiskGate no corresponde a esta llamada",
        "en": "RiskGate's receipt is not for this call",
    },
    "APPROVAL_ARGS_MISMATCH": {
        "es": "lo aprobado y lo que se iba a ejecutar no coinciden",
        "en": "what was approved is not what was about to run",
    },
    "RESULT_NOT_SHOWN": {
        "es": "RiskGate no aceptó el resultado de un paso anterior, y sin verlo no se puede decidir sobre este",
        "en": "RiskGate did not take the result of an earlier step, and without it this one cannot be decided",
    },
    "TASK_NOT_FOUND": {
        "es": "lo que pediste ya ha caducado en RiskGate; pídemelo otra vez",
        "en": "what you asked for is over at RiskGate by now; ask me again",
    },
    "TASK_ENDED": {
        "es": "lo que pediste ya ha terminado en RiskGate; pídemelo otra vez",
        "en": "what you asked for has ended at RiskGate; ask me again",
    },
    "TASK_FULL": {
        "es": "RiskGate ya no puede seguir esta tarea: ha visto demasiado de ella",
        "en": "RiskGate cannot follow this task any further: it was shown too much of it",
    },
    "TASK_CONFLICT": {
        "es": "RiskGate ya conoce esta petición con otras palabras u otro resultado",
        "en": "RiskGate knows this request with other words or another result",
    },
    "ALREADY_REDEEMED": {"es": "el permiso ya se usó", "en": "the permit was already used"},
    "CANCELLED": {"es": "se ha cancelado", "en": "it was cancelled"},
    "NOT_DONE": {"es": "una persona ha dicho que no llegó a hacerse", "en": "a person has said that it was not done"},
    "POLICY_CHANGED": {"es": "las políticas han cambiado", "en": "the policies changed"},
    "BUDGET_EXCEEDED": {"es": "un presupuesto no alcanza para esto", "en": "a budget does not cover this"},
    "ASK_USED_UP": {
        "es": "eso que me pediste ya está hecho; si lo quieres otra vez, pídemelo de nuevo",
        "en": "what you asked for has been done already; if you want it again, ask me again",
    },
    "PERMIT_RETRACTED": {"es": "lo has retirado", "en": "you took it back"},
    "FROZEN": {
        "es": "un operador lo ha detenido por ahora",
        "en": "an operator has stopped this for now",
    },
    "DECISION_REVOKED": {
        "es": "un operador ha retirado el permiso",
        "en": "an operator has withdrawn the permission",
    },
    "RECORD_ALTERED": {
        "es": "lo guardado de esta decisión no es lo que consta; avisa a quien administra esto",
        "en": "what is stored of this decision is not what was recorded; tell whoever runs this",
    },
    "DECISION_TOO_OLD": {
        "es": "ha pasado demasiado tiempo desde que se permitió; pídemelo otra vez",
        "en": "too much time has passed since it was allowed; ask me again",
    },
    "NOT_ELIGIBLE": {
        "es": "la tiene que responder otra persona en RiskGate",
        "en": "another person has to answer it at RiskGate",
    },
    "ARGS_MISMATCH": {"es": "los argumentos no son los mostrados", "en": "the arguments are not the ones shown"},
    "THREAD_MISMATCH": {"es": "es de otra conversación", "en": "it belongs to another conversation"},
}


def say(key: str, language: Language, **params: object) -> str:
    """Return a text. Raise KeyError for an unknown key, which is an internal error (bug) that tests detect.

    A text refers to a tool by what it does, never by its name.
    """
    if isinstance(tool := params.get("tool"), str):
        params["tool"] = tool_title(tool, language)
    return TEXTS[key][language].format(**params).strip()


def tool_title(name: str, language: Language) -> str:
    """Return what a tool does, phrased to follow "may I" and "¿puedo"; for an MCP tool, that it is used."""
    spec, (kind, _, source) = TOOL_REGISTRY.get(name), source_of(name).partition(":")
    if spec is None or kind == "mcp":
        own = name.removeprefix(f"mcp_{source}_")
        return TEXTS["use_tool" if source else "use"][language].format(name=own, source=source)
    title = spec.descriptions[language].partition(":")[0].strip().removesuffix(".")
    return title[:1].lower() + title[1:]


def named(tools: Iterable[str], language: Language) -> str:
    """Return what the tools do, each once with its count, in order."""
    counted = Counter(tool_title(tool, language) if tool else TEXTS["waits_unnamed"][language] for tool in tools)
    return "; ".join(title if count == 1 else f"{title} (×{count})" for title, count in counted.items())


def waiting_line(waiting: Iterable[Asked], language: Language) -> str:
    """Return one line with the approvals pending from this or another person, and how to cancel."""
    still = [one for one in waiting if one.open]
    parts = []
    for key, mine in (("waits", True), ("waits_other", False)):
        tools = [one.tool for one in still if (one.approval_class == "self") == mine]
        if tools:
            size = "one" if len(tools) == 1 else "several"
            parts.append(say(f"{key}_{size}", language, count=len(tools), tools=named(tools, language)))
    return " ".join(parts)


def is_unknown(note: str, language: Language) -> bool:
    """Return True if a note says that a person's words were not understood."""
    return note.startswith(TEXTS["unknown"][language].partition("{")[0])


def shortened(text: str, limit: int = 200) -> str:
    """Return a text of at most limit characters, for references to a person's own words."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def error_text(code: str, language: Language) -> str:
    """Return the meaning of a stable error code, or the code itself if there is no sentence for it."""
    known = ERRORS.get(code)
    return code if known is None else known[language]


def tool_list(specs: Iterable[ToolSpec], language: Language) -> str:
    """Return one line per tool: what it does and how to request it."""
    return "\n".join(f"- {spec.descriptions[language]}" for spec in specs)

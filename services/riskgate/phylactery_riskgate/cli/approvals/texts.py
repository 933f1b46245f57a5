"""What `riskgate approvals` says to a person, in English and Spanish."""

from __future__ import annotations

from typing import Final

TEXTS: Final[dict[str, tuple[str, str]]] = {
    "approval": ("approval", "aprobación"),
    "state": ("state", "estado"),
    "tool": ("tool", "herramienta"),
    "risk": ("risk", "riesgo"),
    "class": ("class", "clase"),
    "requester": ("requested by", "lo pide"),
    "thread": ("thread", "hilo"),
    "run": ("run", "ejecución"),
    "expires": ("expires in", "caduca en"),
    "hash": ("arguments hash", "huella de los argumentos"),
    "decided_by": ("answered by", "respondió"),
    "wanted_by": ("asked for by", "lo exige"),
    "what": ("what", "qué"),
    "argument": ("argument", "argumento"),
    "value": ("value", "valor"),
    "from": ("where it is from", "de dónde sale"),
    "origin_USER": ("the user's words, or made in this task", "palabras de la persona, o hecho en esta tarea"),
    "origin_REGISTRY": ("a registry", "un registro"),
    "origin_POINTED": ("text the user pointed to", "un texto que la persona señaló"),
    "origin_FOREIGN": ("other text, or nowhere", "otro texto, o ninguna parte"),
    "before": ("approved before", "aprobado antes"),
    "votes": ("{votes} of {needed}", "{votes} de {needed}"),
    "over": ("over", "vencida"),
    "yours": ("● waits for your answer", "● espera tu respuesta"),
    "nothing_waits": ("Nothing waits.", "No hay nada en espera."),
    "none": ("None.", "Ninguna."),
    "more": ("There are more; list them with --limit.", "Hay más; lístalas con --limit."),
    "no_arguments": ("No arguments are kept any more.", "Ya no se conserva ningún argumento."),
    "left_out": (
        "{count} more arguments are not shown here: do not approve what you have not seen.",
        "Aquí no se muestran otros {count} argumentos: no apruebes lo que no has visto.",
    ),
    "cut": (
        "A value is not shown whole: riskgate approvals show {id} --full shows all of it.",
        "Un valor no se muestra entero: riskgate approvals show {id} --full lo muestra todo.",
    ),
    "cut_in_full": (
        "A value is longer than what can be shown: do not approve what you have not seen.",
        "Un valor es más largo que lo que se puede mostrar: no apruebes lo que no has visto.",
    ),
    "compared": (
        "Compared with {id}, the last call of this tool approved for {requester}.",
        "Comparado con {id}, la última llamada a esta herramienta aprobada para {requester}.",
    ),
    "not_compared": (
        "No call of this tool was approved for {requester} before.",
        "Nunca se aprobó antes una llamada a esta herramienta para {requester}.",
    ),
    "SAME": ("same", "igual"),
    "CHANGED": ("changed", "cambiado"),
    "NEW": ("new", "nuevo"),
    "REMOVED": ("gone", "quitado"),
    "mark_CONTROL": ("control characters", "caracteres de control"),
    "mark_BIDI": ("direction of reading turned", "sentido de lectura alterado"),
    "mark_INVISIBLE": ("invisible characters", "caracteres invisibles"),
    "mark_LOOK_ALIKE": ("look-alike letters", "letras que imitan a otras"),
    "mark_MIXED_SCRIPT": ("mixed alphabets", "alfabetos mezclados"),
    "mark_PILED_UP": ("piled-up marks", "marcas apiladas"),
    "mark_CUT": ("{count:,} characters not shown", "{count:,} caracteres sin mostrar"),
    "mark_HIDDEN": ("sensitive part hidden", "parte sensible oculta"),
    "confirm": (
        "To approve this, once, type the last {count} characters of the hash (anything else changes nothing)",
        "Para aprobar esto, una vez, escribe los {count} últimos caracteres de la huella (otra cosa no cambia nada)",
    ),
    "unchanged": ("Nothing was changed.", "No se ha cambiado nada."),
    "done": ("{id}: {state}", "{id}: {state}"),
    "voted": (
        "{id}: your yes counts, {votes} of {needed}; another person has to answer too",
        "{id}: tu sí cuenta, {votes} de {needed}; falta la respuesta de otra persona",
    ),
    "other_hash": (
        "{id} is about other arguments than the ones of --args-hash; look at it again",
        "{id} trata de otros argumentos que los de --args-hash; míralo de nuevo",
    ),
    "yes_needs_hash": (
        "--yes goes with --args-hash, the hash of the arguments shown to you",
        "--yes va con --args-hash, la huella de lo que viste",
    ),
    "no_terminal": (
        "there is no terminal to ask on; approve with --yes and --args-hash",
        "no hay terminal donde preguntar; aprueba con --yes y --args-hash",
    ),
    "not_pending": (
        "{id} is {state} already; only a PENDING one can be answered",
        "{id} ya está {state}; solo se responde una que esté PENDING",
    ),
    "watching": (
        "Watching {target}. Ctrl-C ends.",
        "Observando {target}. Ctrl-C termina.",
    ),
    "ask": (
        "[a]pprove  [r]eject  [s]kip  [q]uit",
        "[a]probar  [r]echazar  [s]altar  [q] salir",
    ),
    "ask_reason": ("Why? (may stay empty)", "¿Por qué? (puede quedar vacío)"),
    "lost": (
        "The connection is gone ({why}); trying again …",
        "Se ha perdido la conexión ({why}); reintentando …",
    ),
    "minutes": ("{minutes} min {seconds:02d} s", "{minutes} min {seconds:02d} s"),
}

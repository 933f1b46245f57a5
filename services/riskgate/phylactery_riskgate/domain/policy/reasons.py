"""RiskGate's own reasons, in English and Spanish.

A message never contains an argument's value. Limits in a message come from the catalog.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.model import Reason

MAX_REASONS = 20
MAX_MESSAGE = 300

_TEXTS: dict[str, tuple[str, str]] = {
    "INVALID_JSON": ("The arguments are not valid JSON.", "Los argumentos no son JSON válido."),
    "NOT_AN_OBJECT": ("The arguments must be one JSON object.", "Los argumentos deben ser un objeto JSON."),
    "DUPLICATE_KEY": ("An object repeats a key.", "Un objeto repite una clave."),
    "TOO_DEEP": (
        "The arguments are nested more than {limit} levels deep.",
        "Los argumentos tienen más de {limit} niveles de anidamiento.",
    ),
    "TOO_LARGE": (
        "The arguments are larger than {limit} bytes.",
        "Los argumentos ocupan más de {limit} bytes.",
    ),
    "NUMBER_OUT_OF_RANGE": (
        "A number is outside what every JSON reader can hold exactly.",
        "Un número está fuera de lo que todo lector de JSON puede representar con exactitud.",
    ),
    "NUMBER_NOT_EXACT": (
        "A number has more digits than would be kept.",
        "Un número tiene más dígitos de los que se conservarían.",
    ),
    "INVALID_UNICODE": (
        "A text holds a lone surrogate or a null character.",
        "Un texto contiene un sustituto suelto o un carácter nulo.",
    ),
    "RESERVED_KEY": ("An object uses a reserved key.", "Un objeto usa una clave reservada."),
    "INTEGRITY_MISMATCH": (
        "The arguments are not the ones the caller hashed.",
        "Los argumentos no son los que resumió quien llama.",
    ),
    "UNKNOWN_TOOL": ("The catalog does not know this tool.", "El catálogo no conoce esta herramienta."),
    "SCHEMA_MISMATCH": (
        "The caller holds another schema of this tool than the catalog.",
        "Quien llama tiene un esquema de esta herramienta distinto al del catálogo.",
    ),
    "VALUE_NOT_REPRESENTABLE": (
        "A policy looks at this value, and it cannot be held exactly.",
        "Una política mira este valor, y no se puede representar con exactitud.",
    ),
    "AMOUNT_NOT_COUNTABLE": (
        "A budget counts this amount, and it is missing, negative, not exact, or too large to be added.",
        "Un presupuesto cuenta este importe, y falta, es negativo, no es exacto o es demasiado grande para sumarlo.",
    ),
    "RECIPIENTS_NOT_COUNTABLE": (
        "A budget counts recipients, and this call has more than {limit}.",
        "Un presupuesto cuenta destinatarios, y esta llamada tiene más de {limit}.",
    ),
    "USAGE_UNKNOWN": (
        "A budget counts this tool, and what it has counted was not read.",
        "Un presupuesto cuenta esta herramienta, y no se leyó lo que lleva contado.",
    ),
    "CALL_NOT_KEPT": (
        "No permit: the arguments were erased and the tool has changed. Propose it with another tool_call_id.",
        "Sin permiso: los argumentos se borraron y la herramienta cambió. Propóngala con otro tool_call_id.",
    ),
    "ASK_USED_UP": (
        "No permit: this request was carried out already. Ask the person again.",
        "Sin permiso: esta petición ya se llevó a cabo. Vuelva a preguntar a la persona.",
    ),
    "PERMIT_RETRACTED": (
        "No permit: the person took this back.",
        "Sin permiso: la persona lo ha retirado.",
    ),
    "TASK_ENDED": (
        "No further permit: what was asked for is over. Ask again in a new task.",
        "Sin más permisos: lo que se pidió ya terminó. Vuelva a pedirlo en una tarea nueva.",
    ),
    "DECISION_TOO_OLD": (
        "No further permit: this was decided too long ago. Propose it again with another tool_call_id.",
        "Sin más permisos: esto se decidió hace demasiado tiempo. Propóngalo de nuevo con otro tool_call_id.",
    ),
    "DECISION_REVOKED": (
        "No permit: an operator has revoked this decision.",
        "Sin permiso: un operador ha revocado esta decisión.",
    ),
    "RECORD_ALTERED": (
        "What is stored of this decision is not what the audit log recorded. Tell whoever runs RiskGate.",
        "Lo guardado de esta decisión no es lo que consta en el registro. Avise a quien administra RiskGate.",
    ),
    "FROZEN": (
        "An operator has frozen every call for now.",
        "Un operador ha detenido por ahora todas las llamadas.",
    ),
    "FROZEN_TENANT": (
        "An operator has frozen every call of this organisation for now.",
        "Un operador ha detenido por ahora todas las llamadas de esta organización.",
    ),
    "FROZEN_USER": (
        "An operator has frozen every call of this user for now.",
        "Un operador ha detenido por ahora todas las llamadas de este usuario.",
    ),
    "FROZEN_TOOL": (
        "An operator has frozen this tool for now.",
        "Un operador ha detenido por ahora esta herramienta.",
    ),
    "POLICY_ERROR": (
        "The policies could not be evaluated, so the call is blocked.",
        "No se pudieron evaluar las políticas, así que la llamada se bloquea.",
    ),
    "SUBJECT_NOT_A_USER": (
        "Decisions are about users; a subject of another type may do nothing.",
        "Las decisiones son sobre usuarios; un sujeto de otro tipo no puede hacer nada.",
    ),
    "POLICY_NO_PERMIT": ("No policy permits this call.", "Ninguna política permite esta llamada."),
    "POLICY_FORBID": ("A policy forbids this call: {title}", "Una política prohíbe esta llamada: {title}"),
    "POLICY_PERMIT": ("A policy permits this call: {title}", "Una política permite esta llamada: {title}"),
    "APPROVAL_REQUIRED": (
        "An approval of class {approval_class} is needed: {title}",
        "Hace falta una aprobación de clase {approval_class}: {title}",
    ),
    "APPROVAL_UNANSWERABLE": (
        "Nobody can answer it here: class {approval_class} takes several people, and only one person is here.",
        "Nadie puede responderla aquí: la clase {approval_class} pide varias personas y aquí solo hay una.",
    ),
}

_VIOLATIONS: dict[str, tuple[str, str]] = {
    "required": ("The argument {limit} is missing.", "Falta el argumento {limit}."),
    "type": ("Must be of type {limit}.", "Debe ser de tipo {limit}."),
    "additionalProperties": ("The schema has no such argument.", "El esquema no tiene ese argumento."),
    "minimum": ("Must be at least {limit}.", "Debe ser como mínimo {limit}."),
    "maximum": ("Must be at most {limit}.", "Debe ser como máximo {limit}."),
    "exclusiveMinimum": ("Must be greater than {limit}.", "Debe ser mayor que {limit}."),
    "exclusiveMaximum": ("Must be less than {limit}.", "Debe ser menor que {limit}."),
    "minLength": ("Must have at least {limit} characters.", "Debe tener al menos {limit} caracteres."),
    "maxLength": ("Must have at most {limit} characters.", "Debe tener como máximo {limit} caracteres."),
    "minItems": ("Must have at least {limit} elements.", "Debe tener al menos {limit} elementos."),
    "maxItems": ("Must have at most {limit} elements.", "Debe tener como máximo {limit} elementos."),
    "pattern": ("Does not have the form the schema asks for.", "No tiene la forma que pide el esquema."),
    "format": ("Is not a valid {limit}.", "No es un {limit} válido."),
    "enum": ("Is none of the values the schema allows.", "No es ninguno de los valores que admite el esquema."),
    "const": ("Is not the value the schema asks for.", "No es el valor que pide el esquema."),
    "uniqueItems": ("Has repeated elements.", "Tiene elementos repetidos."),
    "multipleOf": ("Must be a multiple of {limit}.", "Debe ser múltiplo de {limit}."),
}
_BUDGETS: dict[str, tuple[str, str]] = {
    "calls": ("The budget {budget} has no calls left.", "Al presupuesto {budget} no le quedan llamadas."),
    "amount": ("The budget {budget} does not cover this amount.", "El presupuesto {budget} no cubre este importe."),
    "recipients": (
        "The budget {budget} allows no more recipients.",
        "El presupuesto {budget} no admite más destinatarios.",
    ),
}
_ANY_VIOLATION = ("Does not fit the tool's schema.", "No cumple el esquema de la herramienta.")


def reason(code: str, *, path: str = "", **values: object) -> Reason:
    """Return the reason for a code; the values fill its texts."""
    english, spanish = _TEXTS[code]
    return Reason(code, _cut(english.format(**values)), _cut(spanish.format(**values)), path)


@lru_cache(maxsize=4096)
def policy_reason(code: str, policy_id: str, title: str, title_es: str, **values: object) -> Reason:
    """Return the reason for a policy that decided; its titles are the bundle's own texts."""
    english, spanish = _TEXTS[code]
    return Reason(
        code,
        _cut(english.format(title=title, **values)),
        _cut(spanish.format(title=title_es, **values)),
        policy_id=policy_id,
    )


def violation_reason(keyword: str, path: str, limit: object) -> Reason:
    """Return the reason for one schema violation; ``limit`` is the schema's, never the call's value."""
    english, spanish = _VIOLATIONS.get(keyword, _ANY_VIOLATION)
    return Reason("SCHEMA_VIOLATION", _cut(english.format(limit=limit)), _cut(spanish.format(limit=limit)), path)


def freeze_reason(scope: str) -> Reason:
    """Return the reason for a freeze: its code is always FROZEN, and ``scope`` names in its texts what is frozen."""
    code = f"FROZEN_{scope.upper()}"
    return replace(reason(code if code in _TEXTS else "FROZEN"), code="FROZEN")


def budget_reason(budget: str, limit: str) -> Reason:
    """Return the reason for a budget that a call would exceed; ``limit`` names which of its limits."""
    english, spanish = _BUDGETS[limit]
    return Reason("BUDGET_EXCEEDED", english.format(budget=budget), spanish.format(budget=budget))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"


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
    """Return why a call is not considered requested by the user, or None if it is or has no task."""
    kind = facts.missing[0]
    if not facts.shown or not kind:
        return None
    english, spanish = _SENTENCES.get(kind, _UNSURE)
    return Reason(_NOT_UNDERSTOOD, english, spanish)

"""The reasons RiskGate itself gives, in English and Spanish.

A message never holds an argument's value. Limits that stand in one come from the catalog.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

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
    """Builds the reason of a code; the values fill its texts."""
    english, spanish = _TEXTS[code]
    return Reason(code, _cut(english.format(**values)), _cut(spanish.format(**values)), path)


@lru_cache(maxsize=4096)
def policy_reason(code: str, policy_id: str, title: str, title_es: str, **values: object) -> Reason:
    """Builds the reason of a policy that decided; its titles are the bundle's own words."""
    english, spanish = _TEXTS[code]
    return Reason(
        code,
        _cut(english.format(title=title, **values)),
        _cut(spanish.format(title=title_es, **values)),
        policy_id=policy_id,
    )


def violation_reason(keyword: str, path: str, limit: object) -> Reason:
    """Builds the reason of one schema violation; ``limit`` is what the schema says, never what the call held."""
    english, spanish = _VIOLATIONS.get(keyword, _ANY_VIOLATION)
    return Reason("SCHEMA_VIOLATION", _cut(english.format(limit=limit)), _cut(spanish.format(limit=limit)), path)


def freeze_reason(scope: str) -> Reason:
    """Builds the reason of a freeze: its code is always FROZEN, and ``scope`` says in its texts what is frozen."""
    code = f"FROZEN_{scope.upper()}"
    return replace(reason(code if code in _TEXTS else "FROZEN"), code="FROZEN")


def budget_reason(budget: str, limit: str) -> Reason:
    """Builds the reason of a budget that a call would pass; ``limit`` says which of its limits."""
    english, spanish = _BUDGETS[limit]
    return Reason("BUDGET_EXCEEDED", english.format(budget=budget), spanish.format(budget=budget))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"

"""What a person is told or asked about a call that waits, in English and Spanish.

Only a yes or no is ever asked through the client, and only of class "self": no code and no secret, because a client and
its model see what is typed there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from phylactery_client.guard import Waits

from phylactery_mcp_proxy.guarding.results import visible

SELF: Final = "self"
FIELD: Final = "allow"
_MAX_ARGUMENTS: Final = 20
_MAX_VALUE_CHARS: Final = 200
_LANGUAGE_VARIABLES: Final = ("RISKGATE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")

_TEXTS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "question": "May {tool} run with this?",
        "nothing": "(no arguments)",
        "more": "… and {count} more",
        "field": "Allow this call, once",
        "waits": "{tool} was not run: it needs an approval of class {cls}, {approval}.",
        "answer": "A person looks at it with `riskgate approvals show {approval}` and answers it with "
        "`riskgate approvals approve {approval}` or `reject`.",
        "again": "Then make the same call again, with the same arguments.",
        "declined": "{tool} was not run: the user said no.",
        "left": "{tool} was not run: the user did not answer.",
        "unanswerable": "The answer could not be given at RiskGate ({why}).",
    },
    "es": {
        "question": "¿Puede ejecutarse {tool} con esto?",
        "nothing": "(sin argumentos)",
        "more": "… y {count} más",
        "field": "Permitir esta llamada, una vez",
        "waits": "No se ejecutó {tool}: necesita una aprobación de clase {cls}, {approval}.",
        "answer": "Una persona la ve con `riskgate approvals show {approval}` y la responde con "
        "`riskgate approvals approve {approval}` o `reject`.",
        "again": "Después, repite la misma llamada con los mismos argumentos.",
        "declined": "No se ejecutó {tool}: el usuario dijo que no.",
        "left": "No se ejecutó {tool}: el usuario no respondió.",
        "unanswerable": "No se pudo dar la respuesta en RiskGate ({why}).",
    },
}


def text(key: str, **values: object) -> str:
    """Return a text in the language of the environment."""
    said = next((value for name in _LANGUAGE_VARIABLES if (value := os.environ.get(name, ""))), "")
    return _TEXTS["es" if said.lower().startswith("es") else "en"][key].format(**values)


def where_to_answer(waits: Waits) -> str:
    """Return what a model reads of a call that waits: the approval, where it is answered, and what to do then."""
    told = text("waits", tool=waits.tool, cls=waits.approval_class, approval=waits.approval_id)
    return f"{told} {how_to_answer(waits.approval_id)}"


def how_to_answer(approval_id: str) -> str:
    """Return where an approval is answered, and what to do then."""
    return f"{text('answer', approval=approval_id)} {text('again')}"


def question(waits: Waits) -> str:
    """Return what the client's user is asked: the tool, and its bound arguments, which RiskGate made safe to print."""
    lines = [f"{visible(one.path.lstrip('/'))}: {visible(one.display, _MAX_VALUE_CHARS)}" for one in waits.arguments]
    if len(lines) > _MAX_ARGUMENTS:
        lines = [*lines[:_MAX_ARGUMENTS], text("more", count=len(lines) - _MAX_ARGUMENTS)]
    return "\n".join([text("question", tool=waits.tool), *(lines or [text("nothing")])])


def form(waits: Waits) -> types.ElicitRequest:
    """Return the form: one yes or no."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {FIELD: {"type": "boolean", "title": text("field")}},
        "required": [FIELD],
    }
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=question(waits), requested_schema=schema))


def is_yes(answer: types.ElicitResult) -> bool:
    """Return True if the form was sent with a yes; sent without one it is a no."""
    return answer.action == "accept" and (answer.content or {}).get(FIELD) is True


def is_no(answer: types.ElicitResult) -> bool:
    """Return True for a no; a form that was only closed is none."""
    return not is_yes(answer) and answer.action != "cancel"


def takes_forms(capabilities: types.ClientCapabilities | None) -> bool:
    """Return True if a client shows forms; in the revisions before form and URL modes every elicitation was a form."""
    said = capabilities.elicitation if capabilities is not None else None
    return said is not None and (said.form is not None or said.url is None)

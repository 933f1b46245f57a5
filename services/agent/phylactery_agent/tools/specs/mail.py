"""Specification of send_email: one message to one recipient, through the configured server."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import Arguments, object_schema

_TO: Final = r"(?P<to>[^\s@\"'«»“”<>]+@[^\s@\"'«»“”<>:,]+)"
_SUBJECT: Final = r"(?P<subject>\"[^\"]+\"|'[^']+'|«[^»]+»|“[^”]+”)"
_BODY: Final = r"(?P<body>.+)"
_SEND_ES: Final = r"(?:env[ií]a|enviar|env[ií]ale|env[ií]es|manda|mandar|m[aá]ndale)"
_SEND_EN: Final = r"send"


class SendEmailArguments(Arguments):
    """The arguments of send_email."""

    to: str = Field(min_length=3, max_length=254)
    subject: str = Field(default="", max_length=200)
    body: str = Field(min_length=1, max_length=50_000)


SEND_EMAIL: Final = ToolSpec(
    name="send_email",
    descriptions=in_each_language("tool_send_email"),
    schema=object_schema(
        ["to", "body"],
        to={"type": "string", "format": "email", "minLength": 3, "maxLength": 254},
        subject={"type": "string", "maxLength": 200, "default": ""},
        body={"type": "string", "minLength": 1, "maxLength": 50_000},
    ),
    args_model=SendEmailArguments,
    # SMTP cannot be asked whether a message was accepted: what the tool's own notes do not say stays in doubt.
    contract=Contract(
        risk="high", effect="irreversible", idempotency="unsafe", timeout_seconds=60.0, controls=("/to",)
    ),
    verbs=(_SEND_ES, _SEND_EN),
    patterns=(
        Pattern(
            "es",
            _SEND_ES
            + r"\s+(?:un\s+)?(?:correo|email|e-mail|mail)(?:\s+electr[oó]nico)?\s+a\s+"
            + _TO
            + r"(?:\s+(?:con\s+(?:el\s+)?asunto:?|sobre)\s+"
            + _SUBJECT
            + r")?(?:,?\s+(?:y\s+)?(?:que\s+diga|diciendo|con\s+el\s+texto)(?:\s+que|:)?\s+|:\s*)"
            + _BODY,
        ),
        Pattern(
            "en",
            _SEND_EN
            + r"\s+(?:an?\s+)?(?:email|e-mail|mail)\s+to\s+"
            + _TO
            + r"(?:\s+(?:with\s+(?:the\s+)?subject:?|about)\s+"
            + _SUBJECT
            + r")?(?:,?\s+(?:and\s+)?(?:saying|that\s+says|with\s+the\s+text)(?:\s+that|:)?\s+|:\s*)"
            + _BODY,
        ),
    ),
    examples=(
        Example(
            "es",
            "envía un correo a ana@example.org con asunto «Hola» que diga «Llego a las 9»",
            {"to": "ana@example.org", "subject": "Hola", "body": "Llego a las 9"},
        ),
        Example(
            "es",
            "manda un correo a ana@example.org: mañana no puedo ir",
            {"to": "ana@example.org", "body": "mañana no puedo ir"},
        ),
        Example(
            "en",
            'send an email to ana@example.org with subject "Hi" saying "I arrive at 9"',
            {"to": "ana@example.org", "subject": "Hi", "body": "I arrive at 9"},
        ),
        Example(
            "en",
            "send an email to ana@example.org: I can not come tomorrow",
            {"to": "ana@example.org", "body": "I can not come tomorrow"},
        ),
    ),
    labels=in_each_language("tool_send_email.label"),
    quotes_output=False,
)

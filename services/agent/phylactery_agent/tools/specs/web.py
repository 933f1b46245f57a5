"""Specification of http_get: a page of an allowed host."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import READ_EN, READ_ES, Arguments, object_schema

_URL: Final = r"(?P<url>https?://[^\s\"'«»“”<>]+)"
_GET_ES: Final = r"(?:" + READ_ES + r"|descarga|descargar|trae|tr[aá]eme|consulta|visita)"
_GET_EN: Final = r"(?:" + READ_EN + r"|(?:fetch|get|download|visit)(?:\s+me)?)"


class HttpGetArguments(Arguments):
    """The arguments of http_get."""

    url: str = Field(min_length=1, max_length=2_000)


HTTP_GET: Final = ToolSpec(
    name="http_get",
    descriptions=in_each_language("tool_http_get"),
    schema=object_schema(["url"], url={"type": "string", "format": "uri", "minLength": 1, "maxLength": 2_000}),
    args_model=HttpGetArguments,
    contract=Contract(risk="medium", effect="read", idempotency="read_only", timeout_seconds=20.0, controls=("/url",)),
    verbs=(_GET_ES, _GET_EN),
    patterns=(
        Pattern("es", _GET_ES + r"\s+(?:(?:la\s+)?(?:p[aá]gina|web|direcci[oó]n)\s+|el\s+contenido\s+de\s+)?" + _URL),
        Pattern("en", _GET_EN + r"\s+(?:(?:the\s+)?(?:page|url|address)\s+|the\s+contents?\s+of\s+)?" + _URL),
    ),
    examples=(
        Example("es", "lee https://example.org/precios", {"url": "https://example.org/precios"}),
        Example("es", "descarga la página https://example.org/", {"url": "https://example.org/"}),
        Example("en", "fetch https://example.org/prices?year=2027", {"url": "https://example.org/prices?year=2027"}),
        Example("en", "show me the page https://example.org/", {"url": "https://example.org/"}),
    ),
    labels=in_each_language("tool_http_get.label"),
)

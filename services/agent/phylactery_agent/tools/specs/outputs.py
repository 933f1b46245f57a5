"""Specifications of read_output, rehydrate_output and search_output, over outputs stored in memory."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import READ_EN, READ_ES, SEARCH_EN, SEARCH_ES, Arguments, object_schema

_POINTER: Final = r"(?P<pointer>[A-Za-z0-9_-]{8,128})"
_REHYDRATE_ES: Final = r"(?:recupera|recuperar|recup[eé]rame)"
_REHYDRATE_EN: Final = r"(?:rehydrate|bring\s+back)"


class ReadOutputArguments(Arguments):
    """The arguments of read_output; offset and limit count characters."""

    pointer: str = Field(min_length=1, max_length=128)
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=4000, ge=1, le=10_000)


class RehydrateOutputArguments(Arguments):
    """The arguments of rehydrate_output."""

    pointer: str = Field(min_length=1, max_length=128)


class SearchOutputArguments(Arguments):
    """The arguments of search_output; offset counts characters."""

    pointer: str = Field(min_length=1, max_length=128)
    pattern: str = Field(min_length=1, max_length=1_000)
    literal: bool = False
    ignore_case: bool = False
    context_lines: int = Field(default=0, ge=0, le=10)
    offset: int = Field(default=0, ge=0)


READ_OUTPUT: Final = ToolSpec(
    name="read_output",
    descriptions=in_each_language("tool_read_output"),
    schema=object_schema(
        ["pointer"],
        pointer={"type": "string", "minLength": 1, "maxLength": 128},
        offset={"type": "integer", "minimum": 0, "default": 0},
        limit={"type": "integer", "minimum": 1, "maximum": 10_000, "default": 4000},
    ),
    args_model=ReadOutputArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1, evictable=False),
    verbs=(READ_ES, READ_EN),
    patterns=(
        Pattern(
            "es",
            READ_ES
            + r"\s+(?:la\s+|el\s+)?(?:salida|resultado|output)\s+"
            + _POINTER
            + r"(?:,?\s+desde\s+(?:el\s+)?(?P<offset>[0-9]{1,12}))?"
            + r"(?:,?\s+(?:hasta|a)\s+(?:el\s+)?(?P<until>[0-9]{1,12}))?",
        ),
        Pattern(
            "en",
            READ_EN
            + r"\s+(?:the\s+)?output\s+"
            + _POINTER
            + r"(?:,?\s+from\s+(?P<offset>[0-9]{1,12}))?(?:,?\s+(?:to|until)\s+(?P<until>[0-9]{1,12}))?",
        ),
    ),
    examples=(
        Example(
            "es",
            "lee la salida out_abcdefgh desde 5000 hasta 6000",
            {"pointer": "out_abcdefgh", "offset": 5000, "limit": 1000},
        ),
        Example("es", "lee la salida out_abcdefgh", {"pointer": "out_abcdefgh"}),
        Example(
            "en",
            "read output out_abcdefgh from 5000 to 6000",
            {"pointer": "out_abcdefgh", "offset": 5000, "limit": 1000},
        ),
        Example("en", "show me the output out_abcdefgh from 200", {"pointer": "out_abcdefgh", "offset": 200}),
    ),
    labels=in_each_language("tool_read_output.label"),
)

REHYDRATE_OUTPUT: Final = ToolSpec(
    name="rehydrate_output",
    descriptions=in_each_language("tool_rehydrate_output"),
    schema=object_schema(["pointer"], pointer={"type": "string", "minLength": 1, "maxLength": 128}),
    args_model=RehydrateOutputArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1, evictable=False),
    verbs=(_REHYDRATE_ES, _REHYDRATE_EN),
    patterns=(
        Pattern("es", _REHYDRATE_ES + r"\s+(?:entera\s+)?(?:la\s+|el\s+)?(?:salida|resultado|output)\s+" + _POINTER),
        Pattern("en", _REHYDRATE_EN + r"\s+(?:the\s+)?output\s+" + _POINTER),
    ),
    examples=(
        Example("es", "recupera la salida out_abcdefgh", {"pointer": "out_abcdefgh"}),
        Example("en", "bring back the output out_abcdefgh", {"pointer": "out_abcdefgh"}),
        Example("en", "rehydrate output out_abcdefgh", {"pointer": "out_abcdefgh"}),
    ),
    labels=in_each_language("tool_rehydrate_output.label"),
)

_AS_TYPED: Final = {"literal": True, "ignore_case": True}

SEARCH_OUTPUT: Final = ToolSpec(
    name="search_output",
    descriptions=in_each_language("tool_search_output"),
    schema=object_schema(
        ["pointer", "pattern"],
        pointer={"type": "string", "minLength": 1, "maxLength": 128},
        pattern={"type": "string", "minLength": 1, "maxLength": 1_000},
        literal={"type": "boolean", "default": False},
        ignore_case={"type": "boolean", "default": False},
        context_lines={"type": "integer", "minimum": 0, "maximum": 10, "default": 0},
        offset={"type": "integer", "minimum": 0, "default": 0},
    ),
    args_model=SearchOutputArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1, evictable=False),
    verbs=(SEARCH_ES, SEARCH_EN),
    patterns=(
        Pattern(
            "es",
            SEARCH_ES
            + r"\s+(?P<pattern>.+)\s+en\s+(?:la\s+|el\s+)?(?:salida|resultado|output)\s+"
            + _POINTER
            + r"(?:,?\s+desde\s+(?:el\s+)?(?P<offset>[0-9]{1,12}))?",
            _AS_TYPED,
        ),
        Pattern(
            "en",
            SEARCH_EN
            + r"\s+(?P<pattern>.+)\s+in\s+(?:the\s+)?output\s+"
            + _POINTER
            + r"(?:,?\s+from\s+(?P<offset>[0-9]{1,12}))?",
            _AS_TYPED,
        ),
    ),
    examples=(
        Example(
            "es",
            "busca «sin memoria» en la salida out_abcdefgh",
            {"pointer": "out_abcdefgh", "pattern": "sin memoria", **_AS_TYPED},
        ),
        Example(
            "en",
            "search for error in output out_abcdefgh from 5000",
            {"pointer": "out_abcdefgh", "pattern": "error", "offset": 5000, **_AS_TYPED},
        ),
    ),
    labels=in_each_language("tool_search_output.label"),
)

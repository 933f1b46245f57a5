"""The built-in tools' specifications: schema, contract, and how people ask for them in Spanish and English.

The schemas are the catalog's (RiskGate's default bundle); a test compares them.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec

_PATH: Final = r"(?P<path>\"[^\"]+\"|'[^']+'|«[^»]+»|“[^”]+”|[^\s\"'«»“”]+)"
_CONTENT: Final = r"(?P<content>.+)"
_POINTER: Final = r"(?P<pointer>[A-Za-z0-9_-]{8,128})"
_FILE_ES: Final = r"(?:(?:el|un)\s+)?(?:(?:fichero|archivo)\s+)?"
_FILE_EN: Final = r"(?:(?:the|a)\s+)?(?:file\s+)?"
_READ_ES: Final = r"(?:lee|leer|leas|lees|l[eé]eme|muestra|mu[eé]strame|ense[nñ]a|ens[eé][nñ]ame|abre)"
_READ_EN: Final = r"(?:read|show|display|open|cat)(?:\s+me)?"
_WRITE_ES: Final = r"(?:escribe|escribir|escribas|guarda|guardar|graba)"
_WRITE_EN: Final = r"(?:write|save|store)"
_APPEND_ES: Final = r"(?:a[nñ]ade|a[nñ]adir|agrega|agregar|anexa)"
_APPEND_EN: Final = r"(?:append|add)"
_ECHO_ES: Final = r"(?:repite|repetir|eco|di)"
_ECHO_EN: Final = r"(?:echo|repeat|say)"
_REMEMBER_ES: Final = r"(?:recuerda|recordar|acu[eé]rdate(?:\s+de)?|no\s+(?:te\s+)?olvides(?:\s+de)?|anota|apunta)"
_REMEMBER_EN: Final = r"(?:remember|keep\s+in\s+mind|don['’]?t\s+forget|note)"
_RECALL_ES: Final = r"qu[eé]\s+(?:recuerdas|sabes)"
_RECALL_EN: Final = r"(?:what\s+do\s+you\s+(?:remember|know)|recall)"
_REHYDRATE_ES: Final = r"(?:recupera|recuperar|recup[eé]rame)"
_REHYDRATE_EN: Final = r"(?:rehydrate|bring\s+back)"
_SEARCH_ES: Final = r"(?:busca|buscar|encuentra)"
_SEARCH_EN: Final = r"(?:search\s+for|find|grep)"
_QUERY: Final = r"(?P<query>.+?)"


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EchoArguments(_Arguments):
    """The arguments of echo."""

    text: str


class ReadFileArguments(_Arguments):
    """The arguments of read_file."""

    path: str = Field(min_length=1, max_length=400)


class WriteFileArguments(_Arguments):
    """The arguments of write_file."""

    path: str = Field(min_length=1, max_length=400)
    content: str
    append: bool = False


class ReadOutputArguments(_Arguments):
    """The arguments of read_output; offset and limit count characters."""

    pointer: str = Field(min_length=1, max_length=128)
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=4000, ge=1, le=10_000)


class RehydrateOutputArguments(_Arguments):
    """The arguments of rehydrate_output."""

    pointer: str = Field(min_length=1, max_length=128)


class RememberArguments(_Arguments):
    """The arguments of remember."""

    text: str = Field(min_length=1, max_length=10_000)


class RecallArguments(_Arguments):
    """The arguments of recall; without a query it answers what was said last."""

    query: str = Field(default="", max_length=2_000)
    limit: int = Field(default=10, ge=1, le=50)


class SearchOutputArguments(_Arguments):
    """The arguments of search_output; offset counts characters."""

    pointer: str = Field(min_length=1, max_length=128)
    pattern: str = Field(min_length=1, max_length=1_000)
    literal: bool = False
    ignore_case: bool = False
    context_lines: int = Field(default=0, ge=0, le=10)
    offset: int = Field(default=0, ge=0)


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


READ_OUTPUT: Final = ToolSpec(
    name="read_output",
    descriptions={
        "es": "leer un tramo de una salida guardada: lee la salida <puntero> desde 5000 hasta 6000",
        "en": "read a range of a stored output: read output <pointer> from 5000 to 6000",
    },
    schema=_object(
        ["pointer"],
        pointer={"type": "string", "minLength": 1, "maxLength": 128},
        offset={"type": "integer", "minimum": 0, "default": 0},
        limit={"type": "integer", "minimum": 1, "maximum": 10_000, "default": 4000},
    ),
    args_model=ReadOutputArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1, evictable=False),
    verbs=(_READ_ES, _READ_EN),
    patterns=(
        Pattern(
            "es",
            _READ_ES
            + r"\s+(?:la\s+|el\s+)?(?:salida|resultado|output)\s+"
            + _POINTER
            + r"(?:,?\s+desde\s+(?:el\s+)?(?P<offset>[0-9]{1,12}))?"
            + r"(?:,?\s+(?:hasta|a)\s+(?:el\s+)?(?P<until>[0-9]{1,12}))?",
        ),
        Pattern(
            "en",
            _READ_EN
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
    labels={"es": "Salida {pointer}:", "en": "Output {pointer}:"},
)

REHYDRATE_OUTPUT: Final = ToolSpec(
    name="rehydrate_output",
    descriptions={
        "es": "recuperar entera una salida guardada: recupera la salida <puntero>",
        "en": "bring a stored output back whole: bring back output <pointer>",
    },
    schema=_object(["pointer"], pointer={"type": "string", "minLength": 1, "maxLength": 128}),
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
    labels={"es": "Salida {pointer}, entera:", "en": "Output {pointer}, whole:"},
)

_AS_TYPED: Final = {"literal": True, "ignore_case": True}

SEARCH_OUTPUT: Final = ToolSpec(
    name="search_output",
    descriptions={
        "es": "buscar en una salida guardada: busca error en la salida <puntero>",
        "en": "search a stored output: search for error in output <pointer>",
    },
    schema=_object(
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
    verbs=(_SEARCH_ES, _SEARCH_EN),
    patterns=(
        Pattern(
            "es",
            _SEARCH_ES
            + r"\s+(?P<pattern>.+)\s+en\s+(?:la\s+|el\s+)?(?:salida|resultado|output)\s+"
            + _POINTER
            + r"(?:,?\s+desde\s+(?:el\s+)?(?P<offset>[0-9]{1,12}))?",
            _AS_TYPED,
        ),
        Pattern(
            "en",
            _SEARCH_EN
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
    labels={"es": "En la salida {pointer}:", "en": "In output {pointer}:"},
)

READ_FILE: Final = ToolSpec(
    name="read_file",
    descriptions={"es": "leer un fichero: lee notas.txt", "en": "read a file: read notes.txt"},
    schema=_object(["path"], path={"type": "string", "minLength": 1, "maxLength": 400}),
    args_model=ReadFileArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1),
    verbs=(_READ_ES, _READ_EN),
    patterns=(
        Pattern("es", _READ_ES + r"\s+(?:el\s+contenido\s+de(?:l)?\s+)?" + _FILE_ES + _PATH),
        Pattern("en", _READ_EN + r"\s+(?:the\s+contents?\s+of\s+)?" + _FILE_EN + _PATH),
    ),
    examples=(
        Example("es", "lee notas.txt", {"path": "notas.txt"}),
        Example("es", "muéstrame el fichero «mis notas.txt»", {"path": "mis notas.txt"}),
        Example("en", "read notes.txt", {"path": "notes.txt"}),
        Example("en", "show me the file docs/plan.md", {"path": "docs/plan.md"}),
    ),
    labels={"es": "Contenido de «{path}»:", "en": "Contents of “{path}”:"},
)

WRITE_FILE: Final = ToolSpec(
    name="write_file",
    descriptions={
        "es": 'escribir o añadir en un fichero: escribe "hola" en notas.txt',
        "en": 'write or append to a file: write "hello" to notes.txt',
    },
    schema=_object(
        ["path", "content"],
        path={"type": "string", "minLength": 1, "maxLength": 400},
        content={"type": "string"},
        append={"type": "boolean", "default": False},
    ),
    args_model=WriteFileArguments,
    contract=Contract(risk="medium", effect="write", idempotency="reconcilable", controls=("/path",)),
    verbs=(_WRITE_ES, _WRITE_EN, _APPEND_ES, _APPEND_EN),
    patterns=(
        Pattern("es", _WRITE_ES + r"\s+" + _CONTENT + r"\s+en\s+" + _FILE_ES + _PATH),
        Pattern(
            "es",
            _APPEND_ES + r"\s+" + _CONTENT + r"\s+(?:al\s+final\s+de|al|a|en)\s+" + _FILE_ES + _PATH,
            {"append": True},
        ),
        Pattern("en", _WRITE_EN + r"\s+" + _CONTENT + r"\s+(?:into|in|to)\s+" + _FILE_EN + _PATH),
        Pattern(
            "en",
            _APPEND_EN + r"\s+" + _CONTENT + r"\s+(?:to\s+the\s+end\s+of|to)\s+" + _FILE_EN + _PATH,
            {"append": True},
        ),
    ),
    examples=(
        Example("es", 'escribe "hola" en b.txt', {"path": "b.txt", "content": "hola"}),
        Example("es", "añade «otra línea» a b.txt", {"path": "b.txt", "content": "otra línea", "append": True}),
        Example("en", 'write "hello" to b.txt', {"path": "b.txt", "content": "hello"}),
        Example("en", "append 'one more' to the file b.txt", {"path": "b.txt", "content": "one more", "append": True}),
    ),
    labels={"es": "Guardado en «{path}».", "en": "Saved to “{path}”."},
    quotes_output=False,
)

ECHO: Final = ToolSpec(
    name="echo",
    descriptions={"es": "repetir un texto: repite hola", "en": "repeat a text: echo hello"},
    schema=_object(["text"], text={"type": "string"}),
    args_model=EchoArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1),
    verbs=(_ECHO_ES, _ECHO_EN),
    patterns=(
        Pattern("es", _ECHO_ES + r":?\s+(?P<text>.+)"),
        Pattern("en", _ECHO_EN + r":?\s+(?P<text>.+)"),
    ),
    examples=(
        Example("es", "repite hola a todos", {"text": "hola a todos"}),
        Example("en", 'echo "hello there"', {"text": "hello there"}),
    ),
    labels={"es": "", "en": ""},
)

REMEMBER: Final = ToolSpec(
    name="remember",
    descriptions={
        "es": "recordar algo sobre ti: recuerda que prefiero el té",
        "en": "remember something about you: remember that I prefer tea",
    },
    schema=_object(["text"], text={"type": "string", "minLength": 1, "maxLength": 10_000}),
    args_model=RememberArguments,
    # The same text is the same memory, so a second run changes nothing.
    contract=Contract(risk="low", effect="write", idempotency="idempotent_by_key", retries=1),
    verbs=(_REMEMBER_ES, _REMEMBER_EN),
    patterns=(
        Pattern("es", _REMEMBER_ES + r"(?:\s+que|:)\s+(?P<text>.+)"),
        Pattern("en", _REMEMBER_EN + r"(?:\s+that|:)\s+(?P<text>.+)"),
    ),
    examples=(
        Example("es", "recuerda que prefiero el té", {"text": "prefiero el té"}),
        Example("es", "no olvides que vivo en Lima.", {"text": "vivo en Lima."}),
        Example("en", "remember that I prefer tea", {"text": "I prefer tea"}),
        Example("en", 'please remember: "my dog is called Nilo"', {"text": "my dog is called Nilo"}),
    ),
    labels={"es": "Lo recordaré: {text}", "en": "I will remember: {text}"},
    quotes_output=False,
)

RECALL: Final = ToolSpec(
    name="recall",
    descriptions={
        "es": "decir qué recuerdo: ¿qué recuerdas sobre el té?",
        "en": "say what I remember: what do you remember about tea?",
    },
    schema=_object(
        [],
        query={"type": "string", "maxLength": 2_000, "default": ""},
        limit={"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
    ),
    args_model=RecallArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1),
    verbs=(_RECALL_ES, _RECALL_EN, r"busca\s+en\s+(?:tu|la)\s+memoria", r"search\s+(?:your\s+)?memory"),
    patterns=(
        Pattern("es", _RECALL_ES + r"\s+(?:de|sobre|acerca\s+de)\s+m[ií]"),
        Pattern("es", _RECALL_ES + r"\s+(?:de|del|sobre|acerca\s+de(?:l)?)\s+" + _QUERY),
        Pattern("es", r"busca\s+en\s+(?:tu|la)\s+memoria:?\s+" + _QUERY),
        Pattern("en", _RECALL_EN + r"\s+(?:about|of)\s+me"),
        Pattern("en", _RECALL_EN + r"\s+(?:about|of)\s+" + _QUERY),
        Pattern("en", r"search\s+(?:your\s+)?memory\s+for:?\s+" + _QUERY),
    ),
    examples=(
        Example("es", "¿qué recuerdas sobre el té?", {"query": "el té"}),
        Example("es", "¿qué sabes de mí?", {}),
        Example("es", "busca en tu memoria la clave del portal", {"query": "la clave del portal"}),
        Example("en", "what do you remember about tea?", {"query": "tea"}),
        Example("en", "what do you know about me?", {}),
        Example("en", "search your memory for the name of my dog", {"query": "the name of my dog"}),
    ),
    labels={"es": "Lo que recuerdo:", "en": "What I remember:"},
)

BUILTIN_SPECS: Final[tuple[ToolSpec, ...]] = (
    READ_OUTPUT,
    REHYDRATE_OUTPUT,
    SEARCH_OUTPUT,
    READ_FILE,
    WRITE_FILE,
    RECALL,
    REMEMBER,
    ECHO,
)

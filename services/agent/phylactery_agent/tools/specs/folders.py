"""Specifications of list_dir and search_files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.rules.expressions import expression
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import (
    ANY_EN,
    ANY_ES,
    PATH,
    READ_EN,
    READ_ES,
    SEARCH_EN,
    SEARCH_ES,
    Arguments,
    object_schema,
)
from phylactery_agent.tools.specs.shown import folder_shown, matches_shown

_LIST_ES: Final = r"(?:lista|listar|l[ií]stame)"
_LIST_EN: Final = r"(?:list)(?:\s+me)?"
_FILES_ES: Final = r"(?:archivos|ficheros)"
_FOLDER_ES: Final = r"(?:la\s+)?(?:carpeta\s+)?"
_FOLDER_EN: Final = r"(?:the\s+)?(?:(?:folder|directory)\s+)?"
_BELOW_ES: Final = r"(?:\s+(?:de|en|que\s+hay\s+en)\s+" + _FOLDER_ES + PATH + ")?"
_BELOW_EN: Final = r"(?:\s+(?:in|of)\s+" + _FOLDER_EN + PATH + ")?"
_TOLD_ES: Final = r"(?:dime\s+|decime\s+|ensename\s+)?"
_TOLD_EN: Final = r"(?:(?:tell|show)\s+me\s+)?"
_ASK_ES: Final = r"(?:" + _LIST_ES + "|" + READ_ES + ")"
_ASK_EN: Final = r"(?:" + _LIST_EN + "|" + READ_EN + ")"
_PATTERN: Final = r"(?P<pattern>.+?)"
_HOLDING_ES: Final = r"(?:que\s+(?:contienen|contengan|dicen|digan|mencionan|mencionen)|con)"
_HOLDING_EN: Final = r"(?:containing|mentioning|that\s+(?:contain|say|mention)|with)"
_AS_TYPED: Final = {"literal": True, "ignore_case": True}


_SAYS_ES: Final = r"(?:pone|dice|menciona|contiene|aparece|ponen|dicen|mencionan|contienen)"
_SAYS_EN: Final = r"(?:says?|mentions?|contains?|holds?)"
_WHICH: Final = (r"(?:en\s+)?qu[eé]\s+(?:archivos?|ficheros?)", r"(?:which|what)\s+files?")
_OR: Final = expression(r"(?i)\s+(?:or|o|u)\s+")


def _either(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with one expression that matches either of the pattern's two terms."""
    words = _OR.sub("\n", args["pattern"]).split("\n")
    return {**args, "pattern": "|".join(map(re.escape, words)), "literal": False}


class ListDirArguments(Arguments):
    """The arguments of list_dir; an empty path means the whole workspace."""

    path: str = Field(default="", max_length=400)


class SearchFilesArguments(Arguments):
    """The arguments of search_files; limit counts lines."""

    pattern: str = Field(min_length=1, max_length=1_000)
    path: str = Field(default="", max_length=400)
    literal: bool = False
    ignore_case: bool = False
    limit: int = Field(default=100, ge=1, le=500)


LIST_DIR: Final = ToolSpec(
    name="list_dir",
    descriptions=in_each_language("tool_list_dir"),
    schema=object_schema([], path={"type": "string", "maxLength": 400, "default": ""}),
    args_model=ListDirArguments,
    contract=Contract(
        risk="low", effect="read", idempotency="read_only", retries=1, controls=("/path",), answers="json"
    ),
    verbs=(
        _LIST_ES,
        _LIST_EN,
        READ_ES,
        READ_EN,
        r"qu[eé]\s+(?:hay|archivos|ficheros)",
        r"what\s+files",
        r"dime",
        r"tell\s+me",
    ),
    patterns=(
        Pattern("es", _ASK_ES + r"\s+(?:todos\s+)?(?:los\s+|mis\s+)?" + _FILES_ES + _BELOW_ES),
        Pattern("es", _ASK_ES + r"\s+(?:el\s+contenido\s+de\s+)?la\s+carpeta\s+" + PATH),
        Pattern("es", _TOLD_ES + r"qu[eé]\s+" + _FILES_ES + r"\s+(?:hay|tengo|tienes)" + _BELOW_ES),
        Pattern("es", r"(?:tengo|tienes|tenes|hay)\s+(?:" + ANY_ES + r"\s+)?(?:archivos?|ficheros?)" + _BELOW_ES),
        Pattern("es", r"qu[eé]\s+hay\s+en\s+la\s+carpeta\s+" + PATH),
        Pattern("en", _ASK_EN + r"\s+(?:all\s+)?(?:the\s+|my\s+)?files" + _BELOW_EN),
        Pattern("en", _ASK_EN + r"\s+(?:the\s+contents?\s+of\s+)?(?:the\s+)?(?:folder|directory)\s+" + PATH),
        Pattern(
            "en",
            _TOLD_EN
            + r"(?:what|which)\s+files\s+(?:are\s+there|there\s+are|do\s+(?:I|you)\s+have|I\s+have)"
            + _BELOW_EN,
        ),
        Pattern("en", r"(?:do\s+(?:I|you)\s+have|are\s+there)\s+(?:" + ANY_EN + r"\s+)?files?" + _BELOW_EN),
        Pattern("en", r"what(?:['’]s|\s+is)\s+in\s+(?:the\s+)?(?:folder|directory)\s+" + PATH),
    ),
    examples=(
        Example("es", "lista los archivos", {}),
        Example("es", "¿qué archivos hay en docs?", {"path": "docs"}),
        Example("es", "muéstrame el contenido de la carpeta docs", {"path": "docs"}),
        Example("en", "list my files", {}),
        Example("en", "list the files in docs", {"path": "docs"}),
        Example("en", "show me the folder docs", {"path": "docs"}),
    ),
    labels=in_each_language("tool_list_dir.label"),
    shown=folder_shown,
)

_SEARCHES: Final = (
    Pattern(
        "es",
        SEARCH_ES + r"\s+" + _PATTERN + r"\s+en\s+(?:todos\s+)?(?:los|mis)\s+" + _FILES_ES + _BELOW_ES,
        _AS_TYPED,
    ),
    Pattern("es", SEARCH_ES + r"\s+" + _PATTERN + r"\s+en\s+la\s+carpeta\s+" + PATH, _AS_TYPED),
    Pattern(
        "es",
        SEARCH_ES + r"\s+(?:los\s+)?" + _FILES_ES + r"\s+" + _HOLDING_ES + r"\s+" + _PATTERN,
        _AS_TYPED,
    ),
    Pattern(
        "en",
        SEARCH_EN + r"\s+" + _PATTERN + r"\s+in\s+(?:all\s+)?(?:the\s+|my\s+)?files" + _BELOW_EN,
        _AS_TYPED,
    ),
    Pattern("en", SEARCH_EN + r"\s+" + _PATTERN + r"\s+in\s+the\s+(?:folder|directory)\s+" + PATH, _AS_TYPED),
    Pattern(
        "en",
        r"search\s+(?:all\s+)?(?:the\s+|my\s+)?files" + _BELOW_EN + r"\s+for\s+" + _PATTERN,
        _AS_TYPED,
    ),
    Pattern("en", r"find\s+(?:all\s+)?(?:the\s+)?files\s+" + _HOLDING_EN + r"\s+" + _PATTERN, _AS_TYPED),
    Pattern("es", r"busca\s+" + _PATTERN, _AS_TYPED),
    Pattern("es", r"(?:en\s+)?qu[eé]\s+(?:archivos?|ficheros?)\s+" + _SAYS_ES + r"\s+" + _PATTERN, _AS_TYPED),
    Pattern("en", r"search\s+for\s+" + _PATTERN, _AS_TYPED),
    Pattern("en", r"(?:which|what)\s+files?\s+" + _SAYS_EN + r"\s+" + _PATTERN, _AS_TYPED),
)


def _of_either(pattern: Pattern) -> Pattern:
    """Return a pattern for either of two unquoted terms: milk or eggs."""
    said = pattern.expression.replace(_PATTERN, r"(?P<pattern>[^\"'«»“”]+?\s(?:or|o|u)\s[^\"'«»“”]+?)")
    return Pattern(pattern.language, said, pattern.fixed, _either)


SEARCH_FILES: Final = ToolSpec(
    name="search_files",
    descriptions=in_each_language("tool_search_files"),
    schema=object_schema(
        ["pattern"],
        pattern={"type": "string", "minLength": 1, "maxLength": 1_000},
        path={"type": "string", "maxLength": 400, "default": ""},
        literal={"type": "boolean", "default": False},
        ignore_case={"type": "boolean", "default": False},
        limit={"type": "integer", "minimum": 1, "maximum": 500, "default": 100},
    ),
    args_model=SearchFilesArguments,
    contract=Contract(
        risk="low", effect="read", idempotency="read_only", retries=1, controls=("/path",), answers="json"
    ),
    verbs=(SEARCH_ES, SEARCH_EN, r"search\s+(?:all\s+)?(?:the\s+|my\s+)?files", *_WHICH),
    patterns=tuple(one for pattern in _SEARCHES for one in (_of_either(pattern), pattern)),
    examples=(
        Example("es", "busca «presupuesto» en los archivos", {"pattern": "presupuesto", **_AS_TYPED}),
        Example("es", "busca Lima en los archivos de docs", {"pattern": "Lima", "path": "docs", **_AS_TYPED}),
        Example("es", "encuentra los archivos que mencionan Lima", {"pattern": "Lima", **_AS_TYPED}),
        Example("en", "search for budget in my files", {"pattern": "budget", **_AS_TYPED}),
        Example("en", "search the files in docs for Lima", {"pattern": "Lima", "path": "docs", **_AS_TYPED}),
        Example("en", "find the files that mention Lima", {"pattern": "Lima", **_AS_TYPED}),
    ),
    labels=in_each_language("tool_search_files.label"),
    shown=matches_shown,
    nothing=in_each_language("tool_search_files.nothing"),
)

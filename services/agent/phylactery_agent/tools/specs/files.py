"""Specifications of read_file, write_file, undo_write, file_info and send_file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from phylactery_understanding.language.text import is_file_name, tokenize
from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.slots import before_destination
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import FILE_EN, FILE_ES, PATH, READ_EN, READ_ES, Arguments, object_schema
from phylactery_agent.tools.specs.shown import file_shown, undone_shown

_CONTENT: Final = r"(?P<content>.+)"
_WRITE_ES: Final = r"(?:escribe|escribir|escribas|guarda|guardar|graba)"
_WRITE_EN: Final = r"(?:write|save|store)"
_APPEND_ES: Final = r"(?:a[nñ]ade|a[nñ]adir|agrega|agregar|anexa)"
_APPEND_EN: Final = r"(?:append|add)"
_OVER_ES: Final = r"(?:sobrescribe|sobrescribir|reemplaza|reemplazar|remplaza|remplazar|sustituye|sustituir)"
_OVER_EN: Final = r"(?:overwrite|replace)"
_WHOLE_ES: Final = r"(?:(?:todo\s+)?(?:el|su)\s+(?:contenido|texto)\s+del?\s+|todo\s+(?:lo\s+que\s+hay\s+)?en\s+)?"
_WHOLE_EN: Final = (
    r"(?:(?:all\s+(?:of\s+)?)?(?:the\s+)?(?:whole\s+)?(?:contents?|text)\s+(?:of|in)\s+|everything\s+in\s+)?"
)
"""What a new text takes the place of: all of a file. A part of it cannot be replaced without a look at the file."""
_THIS_ES: Final = r"(?:esto\s+|lo\s+siguiente\s+)?"
_THIS_EN: Final = r"(?:this\s+|the\s+following\s+)?"
_PATH_BEFORE: Final = r"(?P<path>\"[^\"]+\"|[^\s\"'«»“”:]+):\s+"
"""A file before what is written to it: write in a.txt: hello."""
_FILE_NAME: Final = r"(?P<path>\"[^\"]+\"|'[^']+'|«[^»]+»|“[^”]+”|[^\s\"'«»“”:,]+\.\w{1,8})"
"""A name that is a file's by its spelling: what else is made, such as a cake, is no file."""
_CREATE_ES: Final = r"(?:crea|creame|crear|haz|hazme|hacer|prepara|preparame)"
_CREATE_EN: Final = r"(?:create|make|start)(?:\s+me)?"
_A_FILE_ES: Final = (
    r"(?:(?:un|una|el|la|nuevo|nueva|archivo|fichero|lista|nota|documento|llamado|llamada|de\s+nombre|con\s+el\s+nombre"
    r"|que\s+se\s+llame|otr[oa]|en|texto|de)[\s,]+)*"
)
_A_FILE_EN: Final = r"(?:(?:an?|the|new|text|file|list|note|document|called|named|another|,|in|to)[\s,]+)*"
_WITH_ES: Final = r"(?:\s*:|,?\s+(?:con|que\s+(?:diga|ponga|contenga)|diciendo|y\s+pon(?:le)?|donde\s+ponga):?)\s+"
_WITH_EN: Final = r"(?:\s*:|,?\s+(?:with|saying|containing|that\s+(?:says|reads|contains)|and\s+put):?)\s+"
_LIST_ES: Final = (
    r"(?:un|una|el|la|mi)\s+(?:nueva\s+)?(?P<path>lista(?:\s+(?:de|del|para)(?:\s+(?:el|la|los|las|mi))?\s+[\pL-]+)?)"
    r"(?:\s*:|,?\s+(?:con|que\s+(?:diga|tenga|ponga|incluya)):?)\s+"
)
_A_LIST_EN: Final = r"(?:an?|the|my)\s+(?:new\s+)?(?P<path>(?:[\pL-]+\s+)?list)"
_LIST_EN: Final = _A_LIST_EN + r"(?:\s*:|,?\s+(?:with|containing|that\s+(?:has|says)):?)\s+"
_LIST_MADE_OF_EN: Final = _A_LIST_EN + r"\s+of:?\s+"
_LIST_OF_EN: Final = (
    r"(?:an?|the|my)\s+(?:new\s+)?(?P<path>list\s+(?:of|for)\s+(?:(?:the|my)\s+)?[\pL-]+)(?:\s*:|\s+with:?)\s+"
)
"""A list by what it is for. What is behind "of" is on it, unless more comes that is."""
_DOWN_ES: Final = r"(?:escribe|escribir|apunta|apuntar|anota|anotar|pon)"
_NOTE_ES: Final = r"(?:ap[uú]ntame|apunta|an[oó]tame|anota|ponme|a[nñ][aá]deme)"
_DOWN_EN: Final = r"(?:write|note|jot|put)(?:\s+down)?"
_UNDO_ES: Final = r"(?:deshaz|deshacer)"
_BACK_ES: Final = r"(?:vuelve\s+a|restaura|recupera)"
_BACK_EN: Final = r"(?:restore|(?:go\s+back|revert)\s+to)"
_LAST_ES: Final = r"(?:el|mi)\s+[uú]ltimo\s+cambio"
_LAST_EN: Final = r"(?:the|my)\s+last\s+change"
_SEND_ES: Final = r"(?:env[ií]a|enviar|env[ií]es|manda|mandar|m[aá]nda|m[aá]ndes|p[aá]sa|pasar|comparte)(?:me)?"
_SEND_EN: Final = r"(?:send|share)(?:\s+me)?"
_SENT_ES: Final = r"(?:(?:el|la|un|una|mi)\s+)?(?:(?:archivo|fichero|documento|foto|imagen)\s+)?"
_SENT_EN: Final = r"(?:(?:the|my|a)\s+)?(?:(?:file|document|photo|picture|image)\s+)?"


class ReadFileArguments(Arguments):
    """The arguments of read_file."""

    path: str = Field(min_length=1, max_length=400)


class WriteFileArguments(Arguments):
    """The arguments of write_file."""

    path: str = Field(min_length=1, max_length=400)
    content: str
    append: bool = False


class UndoWriteArguments(Arguments):
    """The arguments of undo_write; an empty path means the file the conversation changed last."""

    path: str = Field(default="", max_length=400)


class FileInfoArguments(Arguments):
    """The arguments of file_info."""

    path: str = Field(min_length=1, max_length=400)


class SendFileArguments(Arguments):
    """The arguments of send_file. The content is bound beside them, by the hash in the ledger."""

    path: str = Field(min_length=1, max_length=400)


def _a_file(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments, or None if they name a web page: no file of that name is read instead."""
    return None if "://" in args["path"] else dict(args)


_ABOUT_TEXT: Final = expression(
    r"(?i)^(?:the\s+|el\s+|la\s+|las\s+)?(?:text|words?|contents?|line|texto|palabras?|contenido|l[ií]nea|frase)\s+(?P<text>[\"'«“].+)$"
)
_OF_SOURCE: Final = expression(
    r"(?i)^(?:the\s+|el\s+|la\s+|las\s+)?(?:text|words?|contents?|line|texto|palabras?|contenido|l[ií]nea|frase)\b"
)


def _dictated(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments with the dictated text alone, or None if words about a text stand in its place."""
    said = str(args["content"])
    if (found := _ABOUT_TEXT.match(said)) is not None:
        text = said[slice(*found.span(1))]
        return {**args, "content": text[1:-1]} if text[-1] in "\"'»”" else None
    return None if _OF_SOURCE.match(said) is not None else dict(args)


_OF_KNOWN: Final = expression(
    r"(?i)^(?:my|the|all|every\w*|what|these|those|it|that|mis?|los|las|el|la|tod[oa]s?|lo|est[aeo]s?|es[aeo]s?)\b"
)
"""How one thing is told that is known already and has to be looked up: a list of my files."""
_ITEM_ENDS: Final = expression(r"(?i)\s*,\s*(?:(?:and|y|e)\s+)?|\s+(?:and|y|e)\s+")


def _list_kept(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a list as a file with a line for each thing on it; None if it is one of something else.

    The file has the name that is given last, "in trip.txt", or the list's own; another file's name is none of a thing.
    """
    said, path = str(args["content"]).strip(" .!?"), f"{'-'.join(str(args['path']).lower().split())}.txt"
    if names := [one.raw for one in tokenize(said) if is_file_name(one.raw)]:
        said, path = before_destination(said, names[-1]), names[-1]
        if not said or len(names) > 1 or path in said:
            return None
    content = _ITEM_ENDS.sub("\n", said)
    if any(mark in content for mark in '"«»“”`:?¿') or ("\n" not in content and _OF_KNOWN.match(content)):
        return None
    return {**args, "path": path, "content": content}


def _list_of_several(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a list of several things as a file; one of a single kind has to be thought up: names for my dog."""
    kept = _list_kept(args)
    return kept if kept is not None and "\n" in kept["content"] else None


READ_FILE: Final = ToolSpec(
    name="read_file",
    descriptions=in_each_language("tool_read_file"),
    schema=object_schema(["path"], path={"type": "string", "minLength": 1, "maxLength": 400}),
    args_model=ReadFileArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1),
    verbs=(READ_ES, READ_EN),
    patterns=(
        Pattern("es", READ_ES + r"\s+(?:el\s+contenido\s+de(?:l)?\s+)?" + FILE_ES + PATH, meant=_a_file),
        Pattern(
            "en", READ_EN + r"\s+(?:the\s+contents?\s+of\s+)?" + FILE_EN + PATH + r"(?:\s+to\s+me)?", meant=_a_file
        ),
    ),
    examples=(
        Example("es", "lee notas.txt", {"path": "notas.txt"}),
        Example("es", "muéstrame el fichero «mis notas.txt»", {"path": "mis notas.txt"}),
        Example("en", "read notes.txt", {"path": "notes.txt"}),
        Example("en", "show me the file docs/plan.md", {"path": "docs/plan.md"}),
    ),
    labels=in_each_language("tool_read_file.label"),
)

WRITE_FILE: Final = ToolSpec(
    name="write_file",
    descriptions=in_each_language("tool_write_file"),
    schema=object_schema(
        ["path", "content"],
        path={"type": "string", "minLength": 1, "maxLength": 400},
        content={"type": "string"},
        append={"type": "boolean", "default": False},
    ),
    args_model=WriteFileArguments,
    contract=Contract(risk="medium", effect="write", idempotency="reconcilable", controls=("/path",), reversible=True),
    verbs=(_OVER_ES, _OVER_EN, _WRITE_ES, _WRITE_EN, _APPEND_ES, _APPEND_EN, _CREATE_ES, _CREATE_EN),
    patterns=(
        Pattern(
            "es",
            _OVER_ES + r"\s+" + _WHOLE_ES + FILE_ES + _FILE_NAME + r"(?:\s*:|,?\s+(?:por|con):?)\s+" + _CONTENT,
            meant=_dictated,
        ),
        Pattern(
            "en",
            _OVER_EN + r"\s+" + _WHOLE_EN + FILE_EN + _FILE_NAME + r"(?:\s*:|,?\s+(?:with|by):?)\s+" + _CONTENT,
            meant=_dictated,
        ),
        Pattern("es", _CREATE_ES + r"\s+" + _A_FILE_ES + _FILE_NAME + _WITH_ES + _CONTENT, meant=_dictated),
        Pattern("en", _CREATE_EN + r"\s+" + _A_FILE_EN + _FILE_NAME + _WITH_EN + _CONTENT, meant=_dictated),
        Pattern("es", r"(?:me\s+haces|" + _CREATE_ES + r")\s+" + _LIST_ES + _CONTENT, meant=_list_kept),
        Pattern("en", _CREATE_EN + r"\s+" + _LIST_OF_EN + _CONTENT, meant=_list_kept),
        Pattern("en", _CREATE_EN + r"\s+" + _LIST_EN + _CONTENT, meant=_list_kept),
        Pattern("en", _CREATE_EN + r"\s+" + _LIST_MADE_OF_EN + _CONTENT, meant=_list_of_several),
        Pattern("es", _NOTE_ES + r"\s+en\s+" + _A_FILE_ES + _FILE_NAME + r"\s+" + _CONTENT, {"append": True}),
        Pattern("es", _DOWN_ES + r"\s+en\s+" + _A_FILE_ES + _FILE_NAME + r"\s+que\s+" + _CONTENT, {"append": True}),
        Pattern(
            "en",
            _DOWN_EN + r"\s+(?:in|into|to)\s+" + _A_FILE_EN + _FILE_NAME + r"\s+that\s+" + _CONTENT,
            {"append": True},
        ),
        Pattern("es", _WRITE_ES + r"\s+" + _CONTENT + r"\s+en\s+" + FILE_ES + PATH),
        Pattern(
            "es",
            _APPEND_ES + r"\s+" + _CONTENT + r"\s+(?:al\s+final\s+de|al|a|en)\s+" + FILE_ES + PATH,
            {"append": True},
        ),
        Pattern("es", _WRITE_ES + r"\s+" + _THIS_ES + r"en\s+" + FILE_ES + _PATH_BEFORE + _CONTENT),
        Pattern(
            "es",
            _APPEND_ES + r"\s+" + _THIS_ES + r"(?:al|a|en)\s+" + FILE_ES + _PATH_BEFORE + _CONTENT,
            {"append": True},
        ),
        Pattern("en", _WRITE_EN + r"\s+" + _THIS_EN + r"(?:into|in|to)\s+" + FILE_EN + _PATH_BEFORE + _CONTENT),
        Pattern("en", _APPEND_EN + r"\s+" + _THIS_EN + r"to\s+" + FILE_EN + _PATH_BEFORE + _CONTENT, {"append": True}),
        Pattern("en", _WRITE_EN + r"\s+" + _CONTENT + r"\s+(?:into|in|to)\s+" + FILE_EN + PATH),
        Pattern(
            "en",
            _APPEND_EN + r"\s+" + _CONTENT + r"\s+(?:to\s+the\s+end\s+of|to)\s+" + FILE_EN + PATH,
            {"append": True},
        ),
    ),
    examples=(
        Example("es", 'escribe "hola" en b.txt', {"path": "b.txt", "content": "hola"}),
        Example("es", "añade «otra línea» a b.txt", {"path": "b.txt", "content": "otra línea", "append": True}),
        Example("en", 'write "hello" to b.txt', {"path": "b.txt", "content": "hello"}),
        Example("en", "append 'one more' to the file b.txt", {"path": "b.txt", "content": "one more", "append": True}),
    ),
    labels=in_each_language("tool_write_file.label"),
    quotes_output=False,
)

UNDO_WRITE: Final = ToolSpec(
    name="undo_write",
    descriptions=in_each_language("tool_undo_write"),
    schema=object_schema([], path={"type": "string", "maxLength": 400, "default": ""}),
    args_model=UndoWriteArguments,
    contract=Contract(risk="low", effect="write", idempotency="reconcilable", controls=("/path",), answers="json"),
    verbs=(_UNDO_ES, _BACK_ES, r"undo", _BACK_EN),
    patterns=(
        Pattern("es", _UNDO_ES + r"(?:\s+(?:eso|esto|" + _LAST_ES + r"))?"),
        Pattern("es", _UNDO_ES + r"\s+" + _LAST_ES + r"\s+(?:del?|en)\s+" + FILE_ES + PATH),
        Pattern("es", _BACK_ES + r"\s+la\s+versi[oó]n\s+anterior\s+del?\s+" + FILE_ES + PATH),
        Pattern("en", r"undo(?:\s+(?:that|this|it|" + _LAST_EN + r"))?"),
        Pattern("en", r"undo\s+" + _LAST_EN + r"\s+(?:to|of|in)\s+" + FILE_EN + PATH),
        Pattern("en", _BACK_EN + r"\s+the\s+(?:previous|earlier|last)\s+version\s+of\s+" + FILE_EN + PATH),
    ),
    examples=(
        Example("es", "deshaz eso", {}),
        Example("es", "deshaz el último cambio", {}),
        Example("es", "deshaz el último cambio en b.txt", {"path": "b.txt"}),
        Example("en", "undo", {}),
        Example("en", "undo the last change", {}),
        Example("en", "undo the last change to b.txt", {"path": "b.txt"}),
    ),
    labels=in_each_language("tool_undo_write.label"),
    shown_with=undone_shown,
)

FILE_INFO: Final = ToolSpec(
    name="file_info",
    descriptions=in_each_language("tool_file_info"),
    schema=object_schema(["path"], path={"type": "string", "minLength": 1, "maxLength": 400}),
    args_model=FileInfoArguments,
    contract=Contract(
        risk="low", effect="read", idempotency="read_only", retries=1, controls=("/path",), answers="json"
    ),
    verbs=(r"existe", r"does"),
    patterns=(
        Pattern("es", r"existe\s+" + FILE_ES + PATH, meant=_a_file),
        Pattern("en", r"does\s+" + FILE_EN + PATH + r"\s+exist", meant=_a_file),
    ),
    examples=(
        Example("es", "¿existe el fichero b.txt?", {"path": "b.txt"}),
        Example("en", "does b.txt exist?", {"path": "b.txt"}),
    ),
    labels=in_each_language("tool_file_info.label"),
    shown=file_shown,
)

SEND_FILE: Final = ToolSpec(
    name="send_file",
    descriptions=in_each_language("tool_send_file"),
    schema=object_schema(["path"], path={"type": "string", "minLength": 1, "maxLength": 400}),
    args_model=SendFileArguments,
    contract=Contract(
        risk="medium", effect="write", idempotency="idempotent_by_key", controls=("/path",), answers="json"
    ),
    verbs=(_SEND_ES, _SEND_EN),
    patterns=(
        Pattern("es", _SEND_ES + r"\s+" + _SENT_ES + _FILE_NAME + r"(?:\s+(?:a\s+m[ií]|por\s+aqu[ií]))?"),
        Pattern("en", _SEND_EN + r"\s+" + _SENT_EN + _FILE_NAME + r"(?:\s+(?:to\s+me|here))?"),
    ),
    examples=(
        Example("es", "envíame informe.pdf", {"path": "informe.pdf"}),
        Example("es", "mándame el archivo «mis notas.txt»", {"path": "mis notas.txt"}),
        Example("en", "send me report.pdf", {"path": "report.pdf"}),
        Example("en", "send me the file docs/plan.md", {"path": "docs/plan.md"}),
    ),
    labels=in_each_language("tool_send_file.label"),
    quotes_output=False,
)

"""Shared parts of specifications: clause openings, argument expressions, and the form of schemas."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict

PATH: Final = r"(?P<path>\"[^\"]+\"|'[^']+'|«[^»]+»|“[^”]+”|[^\s\"'«»“”]+)"
FILE_ES: Final = r"(?:(?:el|un)\s+)?(?:(?:fichero|archivo)\s+)?"
FILE_EN: Final = r"(?:(?:the|a)\s+)?(?:file\s+)?"
READ_ES: Final = r"(?:lee|leer|leas|lees|leeme|muestra|muestrame|ensena|ensename|abre|abreme|abri|abrime)"
READ_EN: Final = r"(?:read|show|display|open|cat)(?:\s+me)?"
ANY_ES: Final = r"(?:alg[uú]n|alguno|ning[uú]n|m[aá]s|otros?)"
ANY_EN: Final = r"(?:any|any\s+more|more|other)"
SEARCH_ES: Final = r"(?:busca|buscar|encuentra)"
SEARCH_EN: Final = r"(?:search\s+for|find|grep)"


class Arguments(BaseModel):
    """The arguments of a built-in tool: extra fields and values of another type are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def object_schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of arguments with these properties and no others."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

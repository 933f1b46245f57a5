"""Readers for tool descriptions: a JSON Schema, an MCP tool list, or the agent's own export."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NoReturn

from pydantic import Field, ValidationError

from phylactery_riskgate.domain.catalog.catalog import MAX_TIMEOUT_SECONDS, MAX_TOOLS, Pointer
from phylactery_riskgate.domain.catalog.drafting.schemas import DraftError
from phylactery_riskgate.domain.documents import told
from phylactery_riskgate.domain.facts.catalog_facts import FactsEntry
from phylactery_riskgate.domain.model import Effect, Idempotency, Risk
from phylactery_riskgate.domain.policy.guard import GuardError, check_depth

MAX_SOURCE_BYTES: Final = 8 * 1_048_576
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_MAX_DIGITS: Final = 30
_SCHEMA_KEYS: Final = ("inputSchema", "input_schema", "parameters")
_OUTPUT_KEYS: Final = ("outputSchema", "output_schema")


class SourceError(Exception):
    """The input is neither a list of tools nor a schema; the message gives the reason."""


class Known(FactsEntry):
    """The agent's knowledge of its own tools in addition to their schemas; used unchanged if the list is trusted."""

    description_es: str = ""
    risk: Risk | None = None
    effect: Effect | None = None
    controls: list[Pointer] | None = None
    timeout_seconds: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_SECONDS, strict=False)] | None = None
    idempotency: Idempotency | None = None
    forms_only: bool = False


@dataclass(frozen=True, slots=True)
class Hints:
    """An MCP server's claims about a tool; None if it makes none."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One tool as it describes itself; only its name was checked.

    ``trusted`` is True if the operator trusts the hints of the server.
    """

    name: str
    description: str
    input_schema: Any
    output_schema: Any = None
    hints: Hints = Hints()
    trusted: bool = False
    known: Known = field(default_factory=Known)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A tool that cannot be drafted; ``name`` is unchecked text."""

    name: str
    reason: str


def read_sources(
    text: str, *, name: str = "", description: str = "", believed: bool = False, trusted: bool = False
) -> tuple[tuple[Source, ...], tuple[Skipped, ...]]:
    """Read a list of tools, or one schema of the tool ``name``; also return the entries that are not tools.

    ``believed`` accepts the catalog fields in a list unchanged; it is only for the agent's own export. ``trusted``
    allows the annotations of an MCP server to make a tool less strict, too.

    Raises:
        SourceError: the input is neither.
    """
    value = _read(text)
    listed = _listed(value)
    if listed is None:
        return (_schema_source(value, name, description),), ()
    if len(listed) > MAX_TOOLS:
        raise SourceError(f"lists {len(listed)} tools; a catalog holds at most {MAX_TOOLS}")
    found: list[Source] = []
    skipped: list[Skipped] = []
    names: set[str] = set()
    for index, item in enumerate(listed):
        try:
            source = _source(item, believed=believed, trusted=trusted)
        except DraftError as error:
            skipped.append(Skipped(_name_of(item, index), str(error)))
            continue
        if source.name in names:
            skipped.append(Skipped(source.name, "the list names it twice"))
            continue
        names.add(source.name)
        found.append(source)
    return tuple(found), tuple(skipped)


def _read(text: str) -> Any:
    if len(text) > MAX_SOURCE_BYTES:
        raise SourceError(f"is longer than {MAX_SOURCE_BYTES // 1_048_576} MiB")
    try:
        check_depth(text)
        return json.loads(text, object_pairs_hook=_pairs, parse_int=_integer, parse_constant=_constant)
    except GuardError:
        raise SourceError("is nested deeper than a catalog can hold") from None
    except json.JSONDecodeError as error:
        raise SourceError(f"is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) < len(pairs):
        raise SourceError("repeats a key in one object, so two readers would see two different tools")
    return read


def _integer(literal: str) -> int | float:
    return int(literal) if len(literal) <= _MAX_DIGITS else float(literal)


def _constant(literal: str) -> NoReturn:
    raise SourceError(f"holds {literal}, which is not JSON")


def _listed(value: Any) -> list[Any] | None:
    """Return the tools of a list in one of its usual forms, or None if it is not one."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise SourceError("is neither a list of tools nor a JSON Schema")
    for holder in (value, value.get("result")):
        if isinstance(holder, dict) and isinstance(holder.get("tools"), list):
            return holder["tools"]  # type: ignore[no-any-return]  # it is a list
    return [value] if "name" in value and any(key in value for key in _SCHEMA_KEYS) else None


def _schema_source(value: Any, name: str, description: str) -> Source:
    if not name:
        raise SourceError("is one JSON Schema: say with --name which tool takes it")
    if not _NAME.fullmatch(name):
        raise SourceError("--name takes 1 to 128 letters, digits, and the marks _ . -")
    return Source(name, description or str(value.get("description", "")), value)


def _source(item: Any, *, believed: bool, trusted: bool) -> Source:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = item["function"]
    if not isinstance(item, dict):
        raise DraftError("is not a JSON object")
    name = item.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DraftError("its name is not 1 to 128 letters, digits, and the marks _ . -")
    described = item.get("description")
    return Source(
        name=name,
        description=described if isinstance(described, str) else "",
        input_schema=next((item[key] for key in _SCHEMA_KEYS if key in item), None),
        output_schema=next((item[key] for key in _OUTPUT_KEYS if key in item), None),
        hints=_hints(item.get("annotations")),
        trusted=trusted,
        known=_known(item.get("catalog")) if believed else Known(),
    )


def _name_of(item: Any, index: int) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return name[:128] if isinstance(name, str) and name else f"the tool at place {index}"


def _hints(annotations: Any) -> Hints:
    if not isinstance(annotations, dict):
        return Hints()
    said = (annotations.get(key) for key in ("readOnlyHint", "destructiveHint", "idempotentHint"))
    return Hints(*(value if isinstance(value, bool) else None for value in said))


def _known(said: Any) -> Known:
    try:
        return Known.model_validate(said if isinstance(said, Mapping) else {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = "/".join(str(token) for token in first["loc"])
        raise DraftError(f'its "catalog" cannot be used: {where}: {told(first)}') from None

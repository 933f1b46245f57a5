"""The tool catalog, parsed strictly from tools.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import jsonschema_rs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.canonical import hash_json
from phylactery_riskgate.domain.catalog.stakes import StakesEntry, contract_of, review_digest, undo_digest
from phylactery_riskgate.domain.catalog.stakes import faults as stakes_faults
from phylactery_riskgate.domain.catalog.submissions import (
    FORM_ARGUMENTS,
    MAX_SUBMISSIONS,
    SubmissionEntry,
    submission_of,
)
from phylactery_riskgate.domain.catalog.submissions import faults as submission_faults
from phylactery_riskgate.domain.documents import Document, Faults, Place
from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.facts.catalog_facts import FactsEntry, asks_of, faults
from phylactery_riskgate.domain.facts.targets import target_fault
from phylactery_riskgate.domain.model import AmountUnit, CatalogTool, Effect, Idempotency, Risk
from phylactery_riskgate.domain.policy.guard import GuardError, read_struct

MAX_TIMEOUT_SECONDS = 3_600
MAX_TOOLS = 1_000
Pointer = Annotated[str, Field(min_length=2, max_length=pointers.MAX_POINTER, pattern=r"^/")]

NAMED_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
LISTED_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
ONE_SCHEMA = frozenset(
    {"items", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains", "propertyNames", "not"}
    | {"if", "then", "else"}
)
"""The keywords of JSON Schema 2020-12 that hold schemas: a mapping, a list, or a single schema."""


def _amount_entry(value: Any) -> Any:
    """Read a pointer alone as an amount in whole units, as it was before there were units."""
    return {"pointer": value} if isinstance(value, str) else value


class AmountEntry(BaseModel):
    """The argument that is an amount, what it is written in, and its currency where no argument says it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    pointer: Pointer
    unit: AmountUnit = "whole"
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] | None = None

    def contract(self) -> dict[str, Any] | str:
        """Return what belongs to the tool's version: the pointer alone where it says no more."""
        said = self.model_dump(exclude_defaults=True)
        return self.pointer if said.keys() == {"pointer"} else said


class ToolEntry(FactsEntry, StakesEntry, BaseModel):
    """One tool's entry in tools.yaml."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    risk: Risk
    effect: Effect | Literal["none"]
    level: str = ""
    controls: list[Pointer] = []
    sensitive: list[Pointer] = []
    paths: list[Pointer] = []
    amount: Annotated[AmountEntry | None, BeforeValidator(_amount_entry)] = None
    currency: Pointer | None = None
    recipients: list[Pointer] = []
    targets: list[Pointer] = []
    forms_only: bool = False
    timeout_seconds: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_SECONDS, strict=False)] = 30.0
    idempotency: Idempotency = "unsafe"
    description: Annotated[str, Field(min_length=1, max_length=1_000)]
    description_es: Annotated[str, Field(min_length=1, max_length=1_000)]
    input_schema: Annotated[dict[str, Any], Field(alias="schema")]


class ToolsFile(BaseModel):
    """The contents of tools.yaml."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    tools: Annotated[list[ToolEntry], Field(max_length=MAX_TOOLS)]
    submissions: Annotated[list[SubmissionEntry], Field(max_length=MAX_SUBMISSIONS)] = []


def compile_validator(schema: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """Compile a JSON Schema (2020-12) with linear-time regular expressions and every format checked.

    Raises:
        ValueError: it is not a schema, a pattern needs backtracking, or a format is unknown.
    """
    return jsonschema_rs.Draft202012Validator(
        dict(schema),
        pattern_options=jsonschema_rs.RegexOptions(),
        email_options=jsonschema_rs.EmailOptions(allow_display_text=False, allow_domain_literal=False),
        validate_formats=True,
        ignore_unknown_formats=False,
        offline=True,
    )


def read_catalog(document: Document, levels: tuple[str, ...]) -> dict[str, CatalogTool]:
    """Read the tools and check that everything their entries promise can be enforced.

    Raises:
        BundleError: an entry cannot be used; gives its line.
    """
    tools: dict[str, CatalogTool] = {}
    parsed = document.parse(ToolsFile)
    for index, entry in enumerate(parsed.tools):
        where = ("tools", index)
        if entry.name in tools:
            raise document.error((*where, "name"), f"repeats the tool {entry.name!r}")
        if entry.level and entry.level not in levels:
            raise document.error((*where, "level"), f"the level {entry.level!r} is not in riskgate.yaml")
        _check_schema(document, (*where, "schema"), entry.input_schema)
        _check_pointers(document, where, entry)
        _check_facts(document, where, entry)
        _check_amount(document, where, entry)
        _check_effect(document, where, entry)
        _check_forms_only(document, where, entry)
        tools[entry.name] = _tool(entry, levels[0])
    _add_submissions(document, parsed.submissions, tools)
    _add_undo(document, parsed.tools, tools)
    return tools


def _add_undo(document: Document, entries: list[ToolEntry], tools: dict[str, CatalogTool]) -> None:
    """Check the tools that entries name, and mark those whose undo counts: what a tool takes back, only if tried."""
    found = Faults()
    for index, entry in enumerate(entries):
        for field, name in (("undo_tool", entry.undo_tool), *(("needs", one) for one in entry.needs)):
            if name is not None and name not in tools:
                found.add(document.error(("tools", index, field), f"{name} is not in this catalog"))
        other = tools.get(entry.undo_tool or "")
        tried = other is not None and entry.undo_checked == undo_digest(tools[entry.name], other)
        if entry.undo == "ours" or (entry.undo == "tool" and tried):
            tools[entry.name] = replace(tools[entry.name], undoable=True)
    found.check()


def _add_submissions(document: Document, entries: list[SubmissionEntry], tools: dict[str, CatalogTool]) -> None:
    """Give each tool the submissions that forms make of it.

    A tool for forms alone gets those of every tool: a class that the catalog asks of a form holds for whichever tool
    the form is submitted by.
    """
    found = Faults()
    made = []
    for index, entry in enumerate(entries):
        tool = tools.get(entry.tool)
        wrong = [document.error(("submissions", index, *place), text) for place, text in submission_faults(entry, tool)]
        for fault in wrong:
            found.add(fault)
        if tool is not None and not wrong:
            made.append(submission_of(entry))
            tools[entry.tool] = replace(tool, submissions=(*tool.submissions, made[-1]))
    found.check()
    for tool in [one for one in tools.values() if one.forms_only]:
        tools[tool.name] = replace(tool, submissions=tuple(made))


def _tool(entry: ToolEntry, lowest_level: str) -> CatalogTool:
    schema_hash = hash_json(entry.input_schema)
    level = entry.level or lowest_level
    review = review_digest(schema_hash, entry.description)
    reviewed = entry.is_reviewed(review)
    contract = {
        "schema_hash": schema_hash,
        "risk": entry.risk,
        "effect": entry.effect,
        "level": level,
        "controls": entry.controls,
        "sensitive": entry.sensitive,
        "paths": entry.paths,
        "amount": entry.amount and entry.amount.contract(),
        "currency": entry.currency,
        "recipients": entry.recipients,
        "targets": entry.targets,
        "timeout_seconds": entry.timeout_seconds,
        "idempotency": entry.idempotency,
        **({"forms_only": True} if entry.forms_only else {}),
        **contract_of(entry),
        # not the word yes but what was reviewed, so that another description is another version
        **({"reviewed": review} if reviewed else {}),
    }
    return CatalogTool(
        name=entry.name,
        version=hash_json({"tool": entry.name, **contract}),
        risk=entry.risk,
        effect="read" if entry.effect == "none" else entry.effect,
        effectless=entry.effect == "none",
        level=level,
        controls=tuple(entry.controls),
        sensitive=tuple(entry.sensitive),
        paths=tuple(entry.paths),
        schema=entry.input_schema,
        schema_hash=schema_hash,
        timeout_seconds=entry.timeout_seconds,
        idempotency=entry.idempotency,
        description=entry.description,
        description_es=entry.description_es,
        amount=entry.amount.pointer if entry.amount else "",
        amount_unit=entry.amount.unit if entry.amount else "whole",
        amount_currency=(entry.amount.currency or "") if entry.amount else "",
        currency=entry.currency or "",
        recipients=tuple(entry.recipients),
        targets=tuple(entry.targets),
        roles=dict(entry.roles),
        asks=asks_of(entry.asks),
        outputs=tuple(entry.output.items()),
        registry=tuple(entry.registry),
        forms_only=entry.forms_only,
        reach=entry.reach,
        undo=entry.undo,
        undo_tool=entry.undo_tool or "",
        spends=entry.spends,
        destroys=entry.destroys,
        guards=entry.guards,
        sends=tuple(entry.sends),
        needs=tuple(entry.needs),
        reviewed=reviewed,
        review=review,
    )


def _check_schema(document: Document, where: Place, schema: dict[str, Any]) -> None:
    if schema.get("type") != "object":
        raise document.error(where, 'a tool\'s schema has "type: object"')
    try:
        read_struct(schema)
        compile_validator(schema)
    except GuardError as error:
        below = [int(token) if token.isdigit() else token for token in pointers.parse(error.path)]
        raise document.error(
            (*where, *below), f"the schema holds what is refused in arguments: {error.code}"
        ) from error
    except ValueError as error:
        raise document.error(where, f"is not a supported JSON Schema: {error}") from error
    for place, part, reached in _subschemas(schema, (), reached=True):
        _check_part(document, (*where, *place), part, reached=reached)


def _check_part(document: Document, where: Place, part: dict[str, Any], *, reached: bool) -> None:
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in part:
            raise document.error((*where, keyword), f"{keyword} is not used in a catalog; write the schema out")
    if "default" in part:
        if not reached:
            raise document.error((*where, "default"), "a default below a condition or a choice is never applied")
        if not compile_validator(part).is_valid(part["default"]):
            raise document.error((*where, "default"), "the default does not fit its own schema")


def _subschemas(schema: Any, place: Place, *, reached: bool) -> Iterator[tuple[Place, dict[str, Any], bool]]:
    """Yield each schema at or below one, its place, and whether binding reaches it (via properties and items only)."""
    if not isinstance(schema, dict):
        return
    yield place, schema, reached
    for keyword, held in schema.items():
        inside = reached and keyword in {"properties", "items"}
        if keyword in NAMED_SCHEMAS:
            for name, part in held.items():
                yield from _subschemas(part, (*place, keyword, name), reached=inside)
        elif keyword in LISTED_SCHEMAS:
            for index, part in enumerate(held):
                yield from _subschemas(part, (*place, keyword, index), reached=inside)
        elif keyword in ONE_SCHEMA:
            yield from _subschemas(held, (*place, keyword), reached=inside)


def _check_pointers(document: Document, where: Place, entry: ToolEntry) -> None:
    for field, index, text in _pointers(entry):
        place = (*where, field) if index is None else (*where, field, index)
        try:
            part = schema_at(entry.input_schema, pointers.parse(text))
        except ValueError as error:
            raise document.error(place, str(error)) from error
        if part is None:
            raise document.error(place, f"{text} leads to no property of the schema")
        fault = use_fault(field, part)
        if fault:
            raise document.error(place, f"{text} {fault}")


def _check_facts(document: Document, where: Place, entry: ToolEntry) -> None:
    found = Faults()
    schema_of = lambda text: schema_at(entry.input_schema, pointers.parse(text))  # noqa: E731 - used twice below
    for place, message in (
        *faults(entry, schema_of),
        *stakes_faults(entry, entry.name, entry.effect, schema_of),
    ):
        found.add(document.error((*where, *place), message))
    found.check()


def _check_amount(document: Document, where: Place, entry: ToolEntry) -> None:
    """Check that the currency of an amount is said once, and that its role is what it is."""
    if entry.amount is None:
        return
    if entry.amount.currency and entry.currency:
        raise document.error(
            (*where, "amount", "currency"), f"{entry.currency} says the currency already; leave one out"
        )
    role = entry.roles.get(entry.amount.pointer)
    if entry.amount.unit != "whole" and role not in {None, "amount"}:
        raise document.error((*where, "roles", entry.amount.pointer), "is counted as an amount, so its role is amount")


def _check_effect(document: Document, where: Place, entry: ToolEntry) -> None:
    """Check that a tool without effect declares no effects and no outputs: it only returns its own input."""
    if entry.effect != "none":
        return
    if entry.registry:
        raise document.error((*where, "registry"), "a tool without an effect (effect: none) keeps no registry")
    for text, kind in entry.output.items():
        if kind != "free":
            raise document.error((*where, "output", text), "what a tool without an effect answers is free text")
    if entry.risk == "critical":
        raise document.error((*where, "risk"), "a tool without an effect (effect: none) is not critical")


def _check_forms_only(document: Document, where: Place, entry: ToolEntry) -> None:
    """Check that a tool for forms alone says which form it is called for, and that it writes."""
    if not entry.forms_only:
        return
    for name in FORM_ARGUMENTS:
        part = entry.input_schema.get("properties", {}).get(name, {})
        if part.get("type") != "string" or name not in entry.input_schema.get("required", ()):
            raise document.error((*where, "forms_only"), f"needs a required text {name!r}: which form is submitted")
    if entry.effect in {"read", "none"}:
        raise document.error((*where, "effect"), "what a form submits is a write, or it would not be asked about")


def _pointers(entry: ToolEntry) -> Iterator[tuple[str, int | None, str]]:
    for field in ("controls", "sensitive", "paths", "recipients", "targets"):
        for index, text in enumerate(getattr(entry, field)):
            yield field, index, text
    if entry.amount is not None:
        yield "amount", None, entry.amount.pointer
    if entry.currency is not None:
        yield "currency", None, entry.currency


def use_fault(field: str, part: Mapping[str, Any]) -> str:
    """Return why a property cannot be used in the way a field of the entry says, or an empty string."""
    form, name, _ = one_form(part)
    if field == "paths" and part.get("type") != "string":
        return "is not a string, so it cannot be a file path"
    if field == "targets":
        return target_fault(part)
    if field == "amount" and name not in {"integer", "number"}:
        return "is not a number, so it cannot be an amount"
    if field == "recipients":
        texts = name == "string" or (name == "array" and one_form(form.get("items"))[1:] == ("string", False))
        return "" if texts else "is neither a text nor a list of texts, so it names no recipients"
    if field == "currency":
        listed = [text.casefold() for text in form.get("enum", ()) if isinstance(text, str)]
        if name != "string" or not listed or len(set(listed)) < len(listed):
            return "needs an enum of currencies: each has a counter of its own, and an unlisted one would be separate"
    return ""


def schema_at(schema: Mapping[str, Any], tokens: tuple[str, ...]) -> Mapping[str, Any] | None:
    """Return the schema of a property, or None if there is no such property."""
    part: Any = schema
    for token in tokens:
        part = part.get("properties", {}).get(token)
        if not isinstance(part, dict):
            return None
    return part  # type: ignore[no-any-return]  # each step checked that it is a mapping

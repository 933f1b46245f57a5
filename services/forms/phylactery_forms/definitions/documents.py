"""A form's file as YAML, checked against the published schema; every fault is told with its line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from phylactery_understanding.documents import YamlFault, compose, construct

MAX_BYTES: Final = 256_000
_Path = Sequence[str | int]


class FormError(Exception):
    """A form file that cannot be used; says the file, the line and what to change."""


@dataclass(frozen=True)
class Document:
    """The content of a file, and the line of each of its parts."""

    file: str
    data: Mapping[str, Any]
    lines: Mapping[tuple[str | int, ...], int]
    hash: str

    def fault(self, path: _Path, told: str) -> FormError:
        """Return the error about a part, with the line of the nearest part that has one."""
        at = tuple(path)
        while at and at not in self.lines:
            at = at[:-1]
        return FormError(f"{self.file}:{self.lines.get(at, 1)}: {told}")


def schema() -> Mapping[str, Any]:
    """Return the published JSON Schema of a form file."""
    loaded: Mapping[str, Any] = json.loads((files(__package__) / "form.schema.json").read_text(encoding="utf-8"))
    return loaded


def read_document(file: Path, rules: Mapping[str, Any] | None = None) -> Document:
    """Return the content of a file that fits the schema. Raise FormError if it cannot be read or does not fit."""
    try:
        if file.stat().st_size > MAX_BYTES:
            raise FormError(f"{file}:1: the file is larger than {MAX_BYTES} bytes")
        raw = file.read_bytes()
    except OSError as error:
        raise FormError(f"{file} cannot be read: {error.strerror}") from error
    return parse_document(raw, str(file), rules)


def parse_document(raw: bytes, name: str, rules: Mapping[str, Any] | None = None) -> Document:
    """Return the content of a file given as bytes; raises as ``read_document`` does. ``rules`` is another schema."""
    if len(raw) > MAX_BYTES:
        raise FormError(f"{name}:1: the file is larger than {MAX_BYTES} bytes")
    try:
        node = compose(raw.decode("utf-8"))
        data, lines = construct(node), dict(_lines(node, ()))
    except UnicodeDecodeError as error:
        raise FormError(f"{name}:1: the file is not UTF-8") from error
    except YamlFault as fault:
        raise FormError(f"{name}:{fault.line or 1}: not valid YAML: {fault}") from fault
    if not isinstance(data, dict):
        raise FormError(f"{name}:1: the file is not a mapping of names to content")
    found = Document(name, data, lines, hashlib.sha256(raw).hexdigest()[:16])
    checker: Any = _validator() if rules is None else Draft202012Validator(rules)
    violation: Any = best_match(checker.iter_errors(data))
    if violation is not None:
        raise found.fault(list(violation.absolute_path), _told(violation))
    return found


@cache
def _validator() -> Any:
    return Draft202012Validator(schema())


def _told(error: ValidationError) -> str:
    """Return a sentence about a violation of the schema."""
    where = ".".join(map(str, error.absolute_path)) or "the form"
    if error.validator == "required":
        missing = sorted(set(error.validator_value) - set(error.instance))
        if set(missing) & {"es", "en"}:
            return f"{where} has no text in {' and '.join(missing)}; every text a person reads needs es and en"
        return f"{where} has no {' and no '.join(missing)}"
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = set((error.schema.get("properties") if isinstance(error.schema, dict) else None) or ())
        extra = ", ".join(sorted(map(str, set(error.instance) - known)))
        return f"{where} has unknown entries: {extra}; there are: {', '.join(sorted(known))}"
    if error.validator == "enum":
        return f"{where} is {error.instance!r}; it must be one of {', '.join(map(str, error.validator_value))}"
    return f"{where}: {error.message[:300]}"


def _lines(node: yaml.Node | None, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Return the line of each part."""
    if node is None:
        return
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _lines(value, (*path, key.value))
            yield (*path, key.value), key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _lines(value, (*path, number))

"""YAML and JSON reader for bundle files that keeps the line of every value.

Only JSON's data model is accepted: no anchors, no tags, no dates, no yes/no, and a repeated key is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import yaml
from phylactery_understanding.documents import SAFE, YamlFault, compose
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Place = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)
T = TypeVar("T")


_MAX_FAULTS = 200
"""The maximum number of faults reported for one document."""


class BundleError(Exception):
    """An unusable bundle; gives the file, the line (0 if there is none) and the reason.

    ``more`` holds the other faults.
    """

    def __init__(self, file: str, line: int, message: str, more: Iterable[BundleError] = ()) -> None:
        super().__init__(f"{file}:{line}: {message}" if line else f"{file}: {message}")
        self.file = file
        self.line = line
        self.message = message
        self.more = tuple(more)

    @property
    def all(self) -> tuple[BundleError, ...]:
        """Return every fault found, this one first."""
        return (self, *(fault for one in self.more for fault in one.all))


class Faults:
    """A collector of faults, so that one reading of a bundle reports all of them."""

    def __init__(self) -> None:
        self._found: list[BundleError] = []

    def __bool__(self) -> bool:
        """Return True if there are faults."""
        return bool(self._found)

    def add(self, fault: BundleError) -> None:
        """Record a fault and continue."""
        self._found += fault.all

    def catch(self, work: Callable[[], T]) -> T | None:
        """Return the result of work, or None if it raised a BundleError, which is recorded."""
        try:
            return work()
        except BundleError as error:
            self.add(error)
            return None

    def check(self) -> None:
        """Raise the first fault, with the others attached, if there are any."""
        if self._found:
            first, *more = (BundleError(one.file, one.line, one.message) for one in self._found)
            raise BundleError(first.file, first.line, first.message, more)


_SAID: Final = {
    "extra_forbidden": "this key is not known here; check its spelling, and where it stands",
    "missing": "is missing",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list, as in [a, b]",
    "tuple_type": "must be a list, as in [a, b]",
    "set_type": "must be a list, as in [a, b]",
    "frozen_set_type": "must be a list, as in [a, b]",
    "dict_type": "must hold keys with values, as in key: value",
    "model_type": "must hold keys with values, as in key: value",
    "model_attributes_type": "must hold keys with values, as in key: value",
    "string_type": "must be a text; put a number or a date in quotes",
    "int_type": "must be a whole number, without quotes",
    "float_type": "must be a number, without quotes",
}
"""What pydantic says in its own words, for people who know YAML and not pydantic."""
_SUBJECT: Final = re.compile(r"^(?:Value error, |[A-Z][a-z]+ should (?=be|have|match))")


def told(fault: ErrorDetails) -> str:
    """Return what is wrong with a value, as a sentence that follows its place."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "union_tag_invalid":
        return f"must be one of {context['expected_tags']}, and not '{str(context['tag'])[:60]}'"
    if kind == "union_tag_not_found":
        return f"has no {context['discriminator'].strip(chr(39))}, which says what it is"
    if kind in _SAID:
        return _SAID[kind]
    text = fault["msg"].replace(" after validation, not", ", not")
    return _SUBJECT.sub(lambda found: "" if found[0].startswith("Value error") else "must ", text)


class _Loader(SAFE):  # type: ignore[misc,valid-type]  # chosen at run time
    """A YAML loader that resolves plain scalars as JSON does."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as PyYAML declares it


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:null|~|)$"), ["n", "~", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^-?(?:0|[1-9][0-9]*)$"), list("-0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"),
    list("-0123456789"),
)

_SCALARS: dict[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:bool": "true".__eq__,
    "tag:yaml.org,2002:null": lambda _text: None,
}


@dataclass(frozen=True, slots=True)
class Document:
    """One file's content, and the line (from 1) of every place in it."""

    file: str
    data: Any
    lines: Mapping[Place, int]

    def line(self, place: Sequence[str | int]) -> int:
        """Return the line of a place, or of its nearest known ancestor."""
        tokens = tuple(place)
        while tokens and tokens not in self.lines:
            tokens = tokens[:-1]
        return self.lines.get(tokens, 1)

    def error(self, place: Sequence[str | int], message: str) -> BundleError:
        """Return the error for a place."""
        return BundleError(self.file, self.line(place), message)

    def _nearest(self, place: Place, fault: ErrorDetails, said: str) -> Place:
        """Return the place of the key that a fault of a mapping is about: the one that its sentence begins with."""
        key = fault.get("ctx", {}).get("discriminator", "").strip("'") or said.partition(" ")[0].rstrip(":,")
        return (*place, key) if (*place, key) in self.lines else place

    def only(self, *keys: str) -> Document:
        """Return the document reduced to those of the given top-level keys that it has."""
        return Document(self.file, {key: self.data[key] for key in keys if key in self.data}, self.lines)

    def parse(self, model: type[ModelT], place_of: Callable[[Place], Place] = lambda place: place) -> ModelT:
        """Validate the content as a model. ``place_of`` turns a place in the model into the place in the file.

        Raises:
            BundleError: it does not validate; lists every invalid place.
        """
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            faults = Faults()
            for one in error.errors(include_url=False, include_input=False)[:_MAX_FAULTS]:
                said = told(one)
                place = self._nearest(place_of(one["loc"]), one, said)
                where = "/".join(str(token) for token in place)
                faults.add(self.error(place, f"{where or 'the document'}: {said}"))
            faults.check()
            raise


def read_document(file: str, text: str) -> Document:
    """Read one YAML or JSON file.

    Raises:
        BundleError: the file is not such a document, or is empty.
    """
    try:
        node = compose(text, _Loader, text_keys=False)
    except YamlFault as fault:
        raise BundleError(file, fault.line, str(fault)) from fault
    if node is None:
        raise BundleError(file, 1, "is empty")
    lines: dict[Place, int] = {}
    return Document(file, _value(node, (), lines, file), lines)


def _line(part: yaml.Node) -> int:
    return part.start_mark.line + 1 if part.start_mark is not None else 0


def _value(node: yaml.Node, place: Place, lines: dict[Place, int], file: str) -> Any:
    line = _line(node)
    lines.setdefault(place, line)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*place, index), lines, file) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        read: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            lines[(*place, key)] = _line(key_node)
            read[key] = _value(value_node, (*place, key), lines, file)
        return read
    convert = _SCALARS.get(node.tag)
    if convert is None:
        raise BundleError(file, line, f"the tag {node.tag} is not used in a bundle")
    return convert(node.value)

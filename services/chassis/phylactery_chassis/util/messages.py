"""Messages that people read, from Fluent files: one file per language, read once and compiled to functions.

The files are read by Fluent's own parser and formatted here. Its formatter, fluent.runtime, replaces a value of more
than 2,500 characters by "{???}", takes 30 µs for a plural and brings Babel (33 MB) to every service; a message
formatted here takes 1 µs, whatever its values. Files use the part of Fluent that sentences need: variables, variants
chosen by a number or a word, attributes, and text in quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Final

from fluent.syntax import FluentParser, ast

LANGUAGES: Final[Mapping[str, Callable[[int], str]]] = {
    "en": lambda number: "one" if number == 1 else "other",
    "es": lambda number: "one" if number == 1 else "other",
}
"""The languages of message files, and the plural category of a whole number in each, as CLDR defines it."""

_Values = Mapping[str, object]
_Format = Callable[[_Values], str]


class MessageFileError(ValueError):
    """Error of a message file: its name, the line, and what is wrong there."""


class Messages:
    """The messages of one language by their ids; an attribute's id is message.attribute."""

    def __init__(self, language: str, text: str, name: str) -> None:
        """Read the text of a file. Raise MessageFileError if it is wrong."""
        self._name, self._text = name, text
        self._plural = LANGUAGES[language]
        self._formats: dict[str, _Format] = {}
        self._templates: dict[str, str] = {}
        self._placeables: dict[str, frozenset[str]] = {}
        for entry in FluentParser().parse(text).body:
            if isinstance(entry, ast.Message):
                if entry.value is not None:
                    self._add(entry.id.name, entry.value)
                for attribute in entry.attributes:
                    self._add(f"{entry.id.name}.{attribute.id.name}", attribute.value)
            elif not isinstance(entry, ast.BaseComment):
                why = entry.annotations[0].message if isinstance(entry, ast.Junk) and entry.annotations else "a term"
                raise self._error(entry, f"this is not a message: {why}")

    def __call__(self, key: str, /, **values: object) -> str:
        """Return a message with its values filled in. Raise KeyError for an unknown id or a missing value."""
        return self._formats[key](values)

    def __contains__(self, key: object) -> bool:
        """Return True if there is a message of this id."""
        return key in self._formats

    def __iter__(self) -> Iterator[str]:
        """Return the ids in the order of the file."""
        return iter(self._formats)

    def get(self, key: str, default: str) -> str:
        """Return a message without values, or the default if there is none of this id."""
        found = self._formats.get(key)
        return default if found is None else found({})

    def placeables(self, key: str) -> frozenset[str]:
        """Return the names of the values that a message needs."""
        return self._placeables[key]

    def template(self, key: str) -> str:
        """Return a message without variants as a template of str.format. Raise KeyError for any other."""
        return self._templates[key]

    def _add(self, key: str, pattern: ast.Pattern) -> None:
        if key in self._formats:
            raise self._error(pattern, f"'{key}' is defined twice")
        names: set[str] = set()
        parts = self._parts(pattern, names)
        self._formats[key] = _joined(parts)
        self._placeables[key] = frozenset(names)
        if all(isinstance(part, str) for part in parts):
            self._templates[key] = "".join(part for part in parts if isinstance(part, str))

    def _parts(self, pattern: ast.Pattern, names: set[str]) -> list[str | _Format]:
        """Return a pattern as templates of str.format and functions, and add the names of its values."""
        parts: list[str | _Format] = []
        for element in pattern.elements:
            match element:
                case ast.TextElement():
                    parts.append(_escaped(element.value))
                case ast.Placeable(expression=ast.StringLiteral() as literal):
                    parts.append(_escaped(literal.parse()["value"]))
                case ast.Placeable(expression=ast.VariableReference() as variable):
                    names.add(variable.id.name)
                    parts.append(f"{{{variable.id.name}}}")
                case ast.Placeable(expression=ast.SelectExpression(selector=ast.VariableReference()) as select):
                    parts.append(self._choice(select, names))
                case _:
                    raise self._error(element, "only variables, variants and text in quotes are allowed in braces")
        return parts

    def _choice(self, select: ast.SelectExpression, names: set[str]) -> _Format:
        """Return the function for variants: an exact number or word first, then the plural category."""
        assert isinstance(select.selector, ast.VariableReference)
        name, plural = select.selector.id.name, self._plural
        names.add(name)
        variants: dict[str, _Format] = {}
        default: _Format | None = None
        for variant in select.variants:
            key = variant.key.name if isinstance(variant.key, ast.Identifier) else variant.key.value
            variants[key] = _joined(self._parts(variant.value, names))
            default = variants[key] if variant.default else default
        assert default is not None  # the parser refuses variants without one
        otherwise = default

        def chosen(values: _Values) -> str:
            value = values[name]
            found = variants.get(str(value))
            if found is None and isinstance(value, int):
                found = variants.get(plural(value))
            return (found or otherwise)(values)

        return chosen

    def _error(self, node: ast.BaseNode, message: str) -> MessageFileError:
        span = node.span if isinstance(node, ast.SyntaxNode) else None
        line = self._text.count("\n", 0, span.start) + 1 if span else 0
        return MessageFileError(f"{self._name}, line {line}: {message}")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _joined(parts: list[str | _Format]) -> _Format:
    """Return one function for the parts; neighbouring templates become one."""
    formats: list[_Format] = []
    template = ""
    for part in parts:
        if isinstance(part, str):
            template += part
            continue
        if template:
            formats.append(template.format_map)
        template = ""
        formats.append(part)
    if template or not formats:
        formats.append(template.format_map)
    if len(formats) == 1:
        return formats[0]
    return lambda values: "".join([one(values) for one in formats])


@cache
def read_messages(package: str, language: str) -> Messages:
    """Return the messages of a package in one language, from its file language.ftl."""
    name = f"{language}.ftl"
    return Messages(language, resources.files(package).joinpath(name).read_text(encoding="utf-8"), f"{package}/{name}")

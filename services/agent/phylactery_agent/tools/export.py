"""Export of the agent's tools: MCP's format, plus what RiskGate's catalog requires of a tool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from phylactery_agent.ports import Language
from phylactery_agent.tools.contract import ToolSpec

MAX_FORMS: Final = 400
"""Maximum number of forms examined per pattern."""
ANY: Final = "*"

_REPEATS: Final = frozenset("?*+{")
_SPECIAL: Final = frozenset("^$")


class _UnreadableError(Exception):
    """Error for a pattern with unsupported syntax or too many forms."""


class _Pattern:
    """A parser of one expression, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def forms(self) -> list[str]:
        """Return every text the whole expression may match."""
        found = self._choice()
        if self._place < len(self._text):
            raise _UnreadableError
        return found

    def _next(self) -> str:
        if self._place >= len(self._text):
            raise _UnreadableError
        self._place += 1
        return self._text[self._place - 1]

    def _seen(self, mark: str) -> bool:
        if not self._text.startswith(mark, self._place):
            return False
        self._place += len(mark)
        return True

    def _choice(self) -> list[str]:
        found = self._sequence()
        while self._seen("|"):
            found = [*found, *self._sequence()]
        return list(dict.fromkeys(found))

    def _sequence(self) -> list[str]:
        found = [""]
        while self._place < len(self._text) and self._text[self._place] not in "|)":
            pieces = self._repeated()
            found = [f"{before}{piece}" for before in found for piece in pieces]
            if len(found) > MAX_FORMS:
                raise _UnreadableError
        return found

    def _repeated(self) -> list[str]:
        group = self._text[self._place] == "("
        pieces = self._atom()
        optional = False
        while self._place < len(self._text) and self._text[self._place] in _REPEATS:
            mark = self._next()
            if mark == "{":
                while self._next() != "}":
                    pass
            optional = optional or mark in "?*"
        return [""] if optional and group else pieces

    def _atom(self) -> list[str]:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return [self._class()]
        if char == "\\":
            char = self._next()
            return [" " if char == "s" else f" {ANY} " if char.isalnum() else char]
        if char in _SPECIAL | _REPEATS:
            raise _UnreadableError
        return [f" {ANY} " if char == "." else char]

    def _group(self) -> list[str]:
        named = self._seen("?P<")
        if not named and not self._seen("?:"):
            raise _UnreadableError
        if named:
            self._pass_over()
            return [f" {ANY} "]
        inside = self._choice()
        if not self._seen(")"):
            raise _UnreadableError
        return inside

    def _pass_over(self) -> None:
        """Skip to the end of a group that holds an argument."""
        open_groups = 1
        while open_groups:
            char = self._next()
            if char == "\\":
                self._next()
            elif char == "[":
                self._class()
            else:
                open_groups += (char == "(") - (char == ")")

    def _class(self) -> str:
        """Return the letter of a choice of spellings, or the marker for arbitrary text."""
        chars = [self._next()]
        while chars[-1] != "]" or len(chars) == 1:
            chars.append(self._next())
        spellings = chars[:-1]
        if spellings[0] == "^" or "-" in spellings or "\\" in spellings:
            return f" {ANY} "
        return next((char for char in spellings if char.isalpha() and not char.isascii()), spellings[0])


def phrases_of(expression: str) -> tuple[str, ...]:
    """Return the phrases a pattern matches, without optional parts; none if the pattern cannot be parsed."""
    try:
        forms = _Pattern(expression).forms()
    except _UnreadableError:
        return ()
    return tuple(dict.fromkeys(filter(None, (" ".join(_words(form)) for form in forms))))


def _words(form: str) -> Iterator[str]:
    words = ["".join(char for char in word if char.isalnum() or char in "*'’-") for word in form.split()]
    words = [word for word in words if word]
    while words and words[0] == ANY:
        del words[0]
    while words and words[-1] == ANY:
        del words[-1]
    for place, word in enumerate(words):
        if word != ANY or words[place - 1] != ANY:
            yield word


MAX_PHRASES: Final = 200
"""Maximum number of phrases per tool and language, which is the catalog's limit."""


def exported(specs: Iterable[ToolSpec]) -> dict[str, Any]:
    """Return the list of tools; "catalog" of each holds its contract and the phrases that request it."""
    return {"tools": [_tool(spec) for spec in specs]}


def _tool(spec: ToolSpec) -> dict[str, Any]:
    contract = spec.contract
    return {
        "name": spec.name,
        "description": spec.descriptions["en"],
        "inputSchema": _plain(spec.schema),
        **({} if spec.output_schema is None else {"outputSchema": _plain(spec.output_schema)}),
        "annotations": {
            "readOnlyHint": contract.effect == "read",
            "destructiveHint": contract.effect == "irreversible",
        },
        "catalog": {
            "description_es": spec.descriptions["es"],
            "risk": contract.risk,
            "effect": contract.effect,
            "controls": list(contract.controls),
            "timeout_seconds": contract.timeout_seconds,
            "idempotency": contract.idempotency,
            **({"forms_only": True} if spec.forms_only else {}),
            "asks": {
                "phrases": {"en": _phrases(spec, "en"), "es": _phrases(spec, "es")},
                "examples": {"en": _examples(spec, "en"), "es": _examples(spec, "es")},
            },
        },
    }


def _phrases(spec: ToolSpec, language: Language) -> list[str]:
    patterns = (pattern.expression for pattern in spec.patterns if pattern.language == language)
    return list(dict.fromkeys(phrase for expression in patterns for phrase in phrases_of(expression)))[:MAX_PHRASES]


def _examples(spec: ToolSpec, language: Language) -> list[str]:
    return [example.text for example in spec.examples if example.language == language]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value

"""Whether a package's message files agree with each other and with the code that names their messages."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from phylactery_chassis.util.messages import LANGUAGES, Messages, read_messages


@dataclass(frozen=True)
class Call:
    """A call in the code that names a message."""

    place: str
    key: str
    values: frozenset[str] | None
    """The names of the values it fills in; None where they are passed on from elsewhere."""


@dataclass(frozen=True)
class MessageSet:
    """A package's messages, its code, and how the code names them."""

    package: str
    """The package of the language files."""
    calls: Mapping[str, str]
    """The functions that take a message's id first, each with what it puts before it."""
    families: Mapping[str, Iterable[str]]
    """Beginnings of ids that the code completes, each with everything it may complete them with."""
    keywords: frozenset[str] = frozenset()
    """Keywords of the functions themselves, which are no values of a message."""

    @property
    def languages(self) -> dict[str, Messages]:
        """The files that are there, one for each language."""
        files = [Path(one.name) for one in resources.files(self.package).iterdir() if one.name.endswith(".ftl")]
        assert {one.stem for one in files} == set(LANGUAGES)
        return {one.stem: read_messages(self.package, one.stem) for one in files}

    def check(self) -> None:
        """Fail where languages differ, where the code names a message that is none, or a message is not named."""
        english = self.languages["en"]
        for language, said in self.languages.items():
            assert set(said) == set(english), f"{language}.ftl has other messages than en.ftl"
            assert {key: said.placeables(key) for key in said} == {key: english.placeables(key) for key in english}
        calls, words = list(self._calls()), words_in(self.package.partition(".")[0])
        misspelt = [call for call in calls if call.key not in english]
        assert misspelt == [], f"these calls name no message: {misspelt}"
        wrong = [call for call in calls if call.values not in (None, english.placeables(call.key))]
        assert wrong == [], f"these calls fill in other values than the message has: {wrong}"
        completed = {start + end for start, ends in self.families.items() for end in ends}
        assert completed <= set(english), f"a family has members without a message: {completed - set(english)}"
        named = {start + word for start in {"", *self.calls.values()} for word in words}
        unused = [key for key in english if key not in named | completed]
        assert unused == [], f"no code names these messages: {unused}"

    def _calls(self) -> Iterator[Call]:
        """Yield the calls in the code that name messages."""
        for file, node in _nodes(self.package.partition(".")[0]):
            if isinstance(node, ast.Call) and node.args and (name := _name(node.func)) in self.calls:
                whole = name != "in_each_language" and all(one.arg for one in node.keywords)
                values = frozenset(one.arg for one in node.keywords if one.arg) - self.keywords if whole else None
                for key in _texts(node.args[0]):
                    yield Call(f"{file}:{node.lineno}", self.calls[name] + key, values)


@cache
def words_in(package: str) -> frozenset[str]:
    """Return every text that a package's code holds as a whole."""
    nodes = (node for _, node in _nodes(package))
    return frozenset(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _nodes(package: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes of a package's code, each with its file."""
    root = Path(str(resources.files(package)))
    for file in sorted(root.rglob("*.py")):
        name = str(file.relative_to(root))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            yield name, node


def _name(function: Any) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def _texts(node: Any) -> Iterator[str]:
    """Yield the texts an argument may be, as far as they are written there."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)

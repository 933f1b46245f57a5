"""Reads what RiskGate is shown into pieces: values with their places, tokens, and prints of free text.

A piece is JSON and bounded. Of a result it keeps the whole values of the fields the catalog names, and of free text
only prints: a 32-bit checksum of each token and of each two that follow one another, without their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

from phylactery_riskgate.domain.model import CatalogTool, Json
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.literals import dates_of, number
from phylactery_riskgate.domain.tasks.outputs import KINDS, Outputs
from phylactery_riskgate.domain.tasks.words import Piece, read_words

__all__ = ["Piece", "Reading", "prints", "read_result", "read_words"]

MAX_VALUES: Final = 4_000
MAX_ITEMS: Final = 2_000
MAX_PRINTS: Final = 24_000
MAX_NODES: Final = 20_000
"""Objects, lists and values that are looked at."""
MAX_VALUE: Final = 240
"""Characters of a value; a longer one is read as text."""
_APART: Final = 0x5BD1E995
"""Tells two tokens from the one they would make: a checksum goes on where another ended."""
MAX_DEPTH: Final = 40
_MAX_NAME: Final = 12
"""Atoms of a name; what is longer is text, whatever the catalog says."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A piece, how many values are in it, and whether there was more than it takes."""

    piece: Piece
    values: int
    cut: bool


def prints(tokens: Sequence[str]) -> list[int]:
    """Answers the prints of a text: of every token, and of every two that follow one another."""
    # No token holds a space, and a result has thousands of them: all of this runs in C.
    encoded = " ".join(tokens).encode().split(b" ") if tokens else []
    ones = list(map(crc32, encoded))
    return [*ones, *map(crc32, encoded[1:], map(_APART.__xor__, ones))]


def read_result(
    tool: CatalogTool | None,
    tool_name: str,
    tool_call_id: str,
    arguments: Json,
    result: Any | str | None,
    *,
    is_text: bool,
    failed: bool,
) -> Reading:
    """Reads what one call answered; ``is_text`` says that ``result`` is no JSON, so that all of it is free text.

    Of a tool that is None, and of a call that failed, everything is free text.
    """
    outputs = Outputs(() if tool is None or failed or is_text else tool.outputs, () if tool is None else tool.registry)
    reader = _Reader(outputs)
    reader.read(result, (), 0, "")
    made = tool is not None and tool.effect != "read" and not failed
    piece: Piece = {
        "k": "result",
        "tool": tool_name,
        "call": tool_call_id,
        "made": made,
        "a": _argument_values(arguments),
        "i": reader.parents,
        "v": reader.values,
        # A set of integers has one order in every process, and it is not the text's.
        "p": {str(item): list(found) for item, found in reader.prints.items()},
    }
    return Reading(piece, len(reader.values), reader.cut)


def _argument_values(arguments: Json) -> list[str]:
    found: list[str] = []
    waiting: list[Any] = [arguments]
    while waiting and len(found) < MAX_DEPTH:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and len(value) <= MAX_VALUE:
            found.append(" ".join(folding.tokens(folding.fold(value))))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append(number(value))
    return sorted(filter(None, found))


@dataclass(slots=True)
class _Reader:
    """Walks a result. An item is an object of a list, an entry of a map, or a plain value of a list."""

    outputs: Outputs
    parents: list[int] = field(default_factory=lambda: [-1])
    values: list[list[Any]] = field(default_factory=list)
    prints: dict[int, set[int]] = field(default_factory=dict)
    printed: int = 0
    nodes: int = 0
    cut: bool = False

    def read(self, value: Any, place: tuple[str, ...], item: int, name: str) -> None:
        self.nodes += 1
        if len(place) > MAX_DEPTH or self.nodes > MAX_NODES:
            self.cut = True
        elif isinstance(value, dict):
            self._read_object(value, place, item)
        elif isinstance(value, list):
            for one in value:
                below = (*place, "*")
                self.read(one, below, self._item(item) if isinstance(one, dict) or not place else item, name)
        elif value is not None:
            self._keep(value, place, item, name)

    def _read_object(self, value: Json, place: tuple[str, ...], item: int) -> None:
        for key, one in value.items():
            if not isinstance(key, str):
                continue
            if self.outputs.knows(place, key):
                self.read(one, (*place, key), item, key)
                continue
            kind, registry = self.outputs.kind((*place, key))
            inside = self._item(item)
            self._put(key, "naming" if kind in {"orderable", "private"} else kind, inside, "", registry=registry)
            # What is private is asked for by its name; what can be ordered stands in one column with the others.
            self.read(one, (*place, key), inside, key if kind == "private" else "")

    def _item(self, parent: int) -> int:
        if len(self.parents) >= MAX_ITEMS:
            self.cut = True
            return parent
        self.parents.append(parent)
        return len(self.parents) - 1

    def _keep(self, value: Any, place: tuple[str, ...], item: int, name: str) -> None:
        kind, registry = self.outputs.kind(place)
        self._put(value, kind, item, name, registry=registry)

    def _put(self, value: Any, kind: str, item: int, name: str, *, registry: bool) -> None:
        if isinstance(value, bool):
            return
        if not isinstance(value, str):
            written = number(value)
            if written:
                self._value(written, kind, item, name, registry=registry)
            return
        folded = folding.fold(value)
        if kind == "free" and not registry:
            self._print(folded, item)
            return
        tokens = folding.tokens(folded)
        if len(folded) > MAX_VALUE or (kind == "naming" and len(tokens) > _MAX_NAME):
            self._print(folded, item)
        elif tokens:
            norm, written = " ".join(tokens), " ".join(folding.written(value).split())
            self._value(norm, kind, item, name, registry=registry, written="" if written == norm else written)

    def _value(self, norm: str, kind: str, item: int, name: str, *, registry: bool, written: str = "") -> None:
        if len(self.values) >= MAX_VALUES:
            self.cut = True
            return
        kept = [norm, KINDS[kind] + ("r" if registry else ""), item, name[:40]]
        self.values.append([*kept, written] if written else kept)

    def _print(self, folded: str, item: int) -> None:
        room = MAX_PRINTS - self.printed
        tokens = folding.tokens(folded)
        if 2 * len(tokens) > room:
            tokens = tokens[: max(room // 2, 0)]
            self.cut = True
        found = self.prints.setdefault(item, set())
        before = len(found)
        found.update(prints(tokens))
        found.update(day_print(day) for day in dates_of(tokens))
        self.printed += len(found) - before


def day_print(date: str) -> int:
    """Answers the print of a day."""
    return crc32(f"d:{date}".encode())

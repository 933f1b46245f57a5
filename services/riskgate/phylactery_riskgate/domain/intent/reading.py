"""Conversion of what RiskGate is shown into pieces: values with their places, tokens, and prints of free text.

A piece is JSON and bounded in size. Of a result it contains the whole values of the fields in the catalog; of free text
only unordered prints (see prints.py).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice, starmap
from typing import Any, Final
from unicodedata import normalize

import orjson

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.hearing import requests_in
from phylactery_riskgate.domain.intent.origin.literals import number
from phylactery_riskgate.domain.intent.origin.naming import Value
from phylactery_riskgate.domain.intent.origin.prints import cheap_prints, token_prints, triples, whole_print
from phylactery_riskgate.domain.intent.outputs import FREE, Place, outputs
from phylactery_riskgate.domain.intent.pages import lists_in_part
from phylactery_riskgate.domain.intent.words import Piece, read_words
from phylactery_riskgate.domain.model import CatalogTool, Json

__all__ = ["Piece", "Reading", "argument_values", "read_result", "read_words"]

MAX_VALUES: Final = 4_000
MAX_ITEMS: Final = 2_000
MAX_PRINTS: Final = 24_000
MAX_TRIPLES: Final = 400_000
"""More than any one-megabyte text has, and enough to find dictation at the end of one."""
MAX_NODES: Final = 20_000
"""The number of objects, lists and values that are examined."""
MAX_VALUE: Final = 240
"""The maximum length of a value in characters; a longer one is treated as text."""
MAX_DEPTH: Final = 40
_MAX_ENCODED: Final = 100
"""The maximum number of encoded texts in one value that are read."""
_MAX_NAME: Final = 12
"""The maximum number of atoms of a name; a longer one is text, whatever the catalog says."""
_MAX_SCALAR, _MAX_SCALAR_TOKENS = 60, 6
"""The maximum length of a field's text that may be a value, in characters and in tokens."""
_MAX_FIELD: Final = 40
"""The number of characters of a field's name that are kept."""
_OPENING: Final = frozenset("{[")
_is_token = folding.PLAIN_TOKEN.fullmatch


@dataclass(frozen=True, slots=True)
class Reading:
    """A piece, the number of values in it, and whether it was truncated."""

    piece: Piece
    values: int
    cut: bool


def read_result(
    tool: CatalogTool | None,
    tool_name: str,
    tool_call_id: str,
    arguments: Json,
    result: Any | str | None,
    *,
    is_text: bool,
    failed: bool,
    unproven: bool = False,
    partial: bool = False,
    hidden: Collection[str] = (),
) -> Reading:
    """Read one call's result; ``is_text`` says that ``result`` is not JSON, so that all of it is free text.

    ``partial`` says that the model was shown only a part of it, and ``hidden`` are the kinds of values in it that a
    redaction removes.

    If the tool is None or the call failed, everything is free text. If there is no proof that the call ran
    (``unproven``), it is recorded without effect and without arguments.
    """
    reader = _walked(tool if not (failed or is_text or unproven) else None, result)
    prints = reader.prints()
    data = not (failed or is_text or unproven or reader.cut)
    # A number is in no text of its own, so that any text that has it mentions it.
    held = set().union(*prints.values())
    numbers = (one for one in reader.numbers if not held.issuperset(token_prints([one], 1)[0]))
    whole = {whole_print(norm.split(" ")) for norm in (*reader.whole, *numbers)} if data else set()
    made = tool is not None and tool.effect != "read" and not (failed or unproven)
    piece: Piece = {
        "k": "result",
        "tool": tool_name,
        "call": tool_call_id,
        "made": made,
        "u": unproven,
        "a": [] if unproven else argument_values(arguments),
        "i": reader.parents,
        "v": reader.values,
        # A set of integers has the same order in every process, and it is not the order of the text.
        "p": {str(item): list(found) for item, found in prints.items()},
        "d": {str(item): found for item, found in reader.triples.items() if found},
        **({"f": {"0": sorted(whole)}, "s": {"0": sorted(reader.repeated)}} if whole else {}),
        **({"x": True} if reader.cut else {}),
        **({"l": True} if not made and lists_in_part(result, arguments, _described(tool)) else {}),
        **({"r": {"0": asked}} if (asked := reader.requests()) else {}),
        **({"h": _last_tokens(arguments)} if partial else {}),
        **({"n": written_size(result)} if partial and is_text and isinstance(result, str) else {}),
        **({"e": spelled} if not unproven and (spelled := _spelled(arguments)) else {}),
        **({"z": sorted(hidden)} if hidden else {}),
    }
    return Reading(piece, len(reader.values), reader.cut)


def written_size(text: str) -> int:
    """Return the number of characters of a text that are no spaces: a copy has as many, however it is laid out."""
    return sum(map(len, text.split()))


def _described(tool: CatalogTool | None) -> Collection[str]:
    return () if tool is None else [text for text, kind in tool.outputs if kind != "free"]


def _walked(tool: CatalogTool | None, result: Any) -> _Reader:
    """Walk a result. If its shape is not the catalog's, nothing in it is trusted, but private values stay private."""
    if tool is None:
        reader = _Reader()
        reader.read(result, FREE, 0, 0, "")
        return reader
    try:
        reader = _Reader()
        reader.read(result, outputs(tool.outputs, tool.registry), 0, 0, "")
    except _OtherShapeError:
        reader = _Reader()
        reader.read(result, outputs(tuple(one for one in tool.outputs if one[1] == "private"), ()), 0, 0, "")
    return reader


class _OtherShapeError(Exception):
    """A result whose shape differs from the catalog's pointers."""


def _holds_json(text: str) -> bool:
    """Return True if a text is an embedded JSON object or list: none of it is a field of the result."""
    if text.lstrip()[:1] not in _OPENING:
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _last_tokens(arguments: Json) -> list[str]:
    """Return the last tokens of the arguments: the names of files, in whatever folder."""
    return sorted({folding.last_token(value) for value in arguments.values() if isinstance(value, str)} - {""})


def _spelled(arguments: Json) -> list[str]:
    """Return the arguments that folding changes, as they are spelled: "Notes.txt" and "notes.txt" are two files."""
    texts = {one for one in arguments.values() if isinstance(one, str) and len(one) <= MAX_VALUE}
    return sorted(normalize("NFC", one) for one in texts if one != " ".join(folding.tokens(folding.fold(one))))


def argument_values(arguments: Json) -> list[str]:
    """Return the normal forms of the texts and numbers in arguments, sorted; a long text is left out."""
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
    """A walker over a result. An item is an object of a list, an entry of a map, or a scalar of a list.

    Free text is collected until the walk is over: reading all of it at once is faster than one text at a time.
    """

    parents: list[int] = field(default_factory=lambda: [-1])
    values: list[list[Any]] = field(default_factory=list)
    texts: list[tuple[str, int]] = field(default_factory=list)
    whole: set[str] = field(default_factory=set)
    """The normal forms of the short texts that are all of a field."""
    numbers: set[str] = field(default_factory=set)
    """Those of the numbers in fields that the catalog does not describe."""
    repeated: set[int] = field(default_factory=set)
    """The prints that several different texts have."""
    triples: dict[int, array[int]] = field(default_factory=dict)
    nodes: int = 0
    cut: bool = False

    def read(self, value: Any, place: Place, depth: int, item: int, name: str) -> None:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            self.cut = True
        elif isinstance(value, dict):
            self._object(value, place, depth, item)
        elif isinstance(value, list):
            self._list(value, place, depth, item, name)
        elif value is None or isinstance(value, bool):
            return
        elif place.holds_fields or place.holds_items:
            raise _OtherShapeError
        elif isinstance(value, str):
            self._text(value, place, item, name)
        else:
            written = number(value)
            if written and place.free:
                self.numbers.add(written)
            if written:
                self._value(written, place, item, name)

    def _list(self, values: list[Any], place: Place, depth: int, item: int, name: str) -> None:
        if place.holds_fields:
            raise _OtherShapeError
        below = place.items
        for one in values:
            inside = self._item(item) if isinstance(one, dict) or not depth else item
            self.read(one, below, depth + 1, inside, name)

    def _object(self, value: Json, place: Place, depth: int, item: int) -> None:
        fields = place.fields
        for key, one in value.items():
            below = fields.get(key)
            if below is not None:
                self.read(one, below, depth + 1, item, key)
                continue
            if not isinstance(key, str):
                continue
            below = place.below(key)
            if place.knows(key):
                self.read(one, below, depth + 1, item, key)
                continue
            inside = self._item(item)
            self._text(key, below.of_key, inside, "")
            # Private values are requested by name; orderable ones are compared within one column.
            self.read(one, below, depth + 1, inside, key if below.kind == "private" else "")

    def _item(self, parent: int) -> int:
        if len(self.parents) >= MAX_ITEMS:
            self.cut = True
            return parent
        self.parents.append(parent)
        return len(self.parents) - 1

    def _text(self, value: str, place: Place, item: int, name: str) -> None:
        for text in islice(folding.decoded_in(value), _MAX_ENCODED):
            self.texts.append((folding.fold(text), item))
        plain = value.isascii()
        folded = value.lower() if plain else folding.fold(value)
        if place.free or len(folded) > MAX_VALUE or (place.kind != "private" and _holds_json(value)):
            self._free(folded, item)
            return
        if plain and _is_token(folded):
            self._value(folded, place, item, name)
            return
        tokens = folding.tokens(folded)
        if place.kind == "naming" and len(tokens) > _MAX_NAME:
            self.texts.append((folded, item))
        elif tokens:
            norm, written = " ".join(tokens), " ".join(folding.written(value).split())
            self._value(norm, place, item, name, "" if written == norm else written)

    def requests(self) -> list[int]:
        """Return what the texts ask for, names of several words among them: others may have written these, too."""
        titles = (value.norm.split() for value in starmap(Value, self.values) if value.is_written)
        return sorted(requests_in([*(folding.tokens(text) for text, _ in self.texts), *titles]))

    def _free(self, folded: str, item: int) -> None:
        if len(folded) <= _MAX_SCALAR and len(self.whole) < MAX_VALUES:
            tokens = folding.tokens(folded)
            if 0 < len(tokens) <= _MAX_SCALAR_TOKENS:
                self.whole.add(" ".join(tokens))
        self.texts.append((folded, item))

    def _value(self, norm: str, place: Place, item: int, name: str, written: str = "") -> None:
        if len(self.values) >= MAX_VALUES:
            self.cut = True
            return
        kept = [norm, place.code, item, name[:_MAX_FIELD]]
        self.values.append([*kept, written] if written else kept)

    def prints(self) -> dict[int, set[int]]:
        """Return the prints of each item's free text, up to the limit, and store its triples."""
        found: dict[int, set[int]] = {}
        once: dict[int, str] = {}
        kept = noted = 0
        cheap = cheap_prints([text for text, _ in self.texts])
        for folded, item in self.texts:
            most = max(MAX_PRINTS - kept, 0) // 2
            read = next(cheap)
            if read is not None and read[1] <= most:
                more, threes = read[0], read[2]
            else:
                tokens = folding.tokens(folded)
                more, cut = token_prints(tokens, most)
                threes = triples(tokens) if read is None else read[2]
                self.cut = self.cut or cut
            known = found.setdefault(item, set())
            before = len(known)
            known |= more
            self.repeated.update(one for one in more if once.setdefault(one, folded) != folded)
            kept += len(known) - before
            if noted + len(threes) <= MAX_TRIPLES:
                self.triples.setdefault(item, array("I")).extend(threes)
                noted += len(threes)
        return found

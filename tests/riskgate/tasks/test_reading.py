"""Fast parsing of a result equals parsing it token by token and value by value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phylactery_riskgate.domain.facts.facts import NO_TOOL
from phylactery_riskgate.domain.intent import folding, reading
from phylactery_riskgate.domain.intent.origin.literals import dates_of, number
from phylactery_riskgate.domain.intent.origin.prints import cheap_prints, day_print, prints, token_prints, triples
from phylactery_riskgate.domain.intent.packing import packed, unpacked
from phylactery_riskgate.domain.intent.reading import MAX_VALUE, read_result
from phylactery_riskgate.domain.model import CatalogTool
from phylactery_riskgate.domain.pointers import parse

from tests.support.cases import each_case

MANY = 12_000
HOSTILE = (
    "ana@acme.es, bob@acme.es; <eve@evil.example>",
    "a.b c-d e_f 'quoted' \"double\" (x) [y] {z} a:b 1:2 1/2 1,2 1,a a,1 ,1 1, :1 1: ... -- '' @ & + _",
    "10:30, 2026-05-14T10:00:00Z 14/05/2026 5.14.26 1.234,56 1,234.56 10 000 12'500 $3.50 €4,00",
    "May 3rd, 2026; 3 de mayo de 2026, mar 4, the 1st of june and may be",
    "%65%76%65%40evil.example QUFBQUFBQUFBQUFB ZXZlQGV2aWwuZXhhbXBsZQ==",
    "e\u200bve@evil\u2060.example \u0435v\u0435@evil.ex\u0430mple ｅｖｅ＠ｅｖｉｌ．ｅｘａｍｐｌｅ",
    "eve\u00ad@evil.example \u2024 1\u066b5 a\uff0eb",
    "José Ñandú, cafe\u0301 ÅNGSTRÖM ﬁle straße İstanbul ١٢ مايو 3 may ①②",
    "https://a.b/c?d=e&f=%20#g http://1.2.3.4:80/5 ../x ~/y *.docx a..b 1::2 1//2 1,,2 .a. -a-",
    "x\x00y\x1fz\x7f\t\n\r\x0b\x0c\x1c\x85w\x80\x81\x82",
)
BITS = st.sampled_from(
    [" ", ". ", ", ", ".", ",", ":", "/", "-", "'", "@", "&", "+", "_", "1", "23", "a", "may", "4th", "2026"]
)
TEXT = st.one_of(
    st.lists(BITS, max_size=30).map("".join),
    st.lists(st.sampled_from(HOSTILE) | st.text(max_size=12), max_size=4).map(" ".join),
    st.text(max_size=60),
    st.text(st.characters(max_codepoint=127), max_size=60),
)


def text_prints(folded: str, most: int) -> tuple[set[int], bool]:
    """Return the prints of a text's first tokens, the cheap way where that fits, and whether there are more."""
    read = next(cheap_prints([folded])) if most else None
    if read is not None and read[1] <= most:
        return read[0], False
    return token_prints(folding.tokens(folded), most)


def _plain_prints(folded: str, most: int) -> tuple[set[int], bool]:
    tokens = [folded[start:end] for start, end in folding.spans(folded)]
    kept = tokens[:most]
    ones = [crc32(token.encode()) for token in kept]
    pairs = {(one * 0x9E3779B1 + other) % 2**32 for one, other in pairwise(ones)}
    return {*ones, *pairs, *map(day_print, dates_of(kept))}, len(tokens) > most


@settings(deadline=None, max_examples=400)
@given(TEXT.map(folding.fold), st.integers(0, 12) | st.just(MANY))
def test_the_prints_of_a_text_are_those_of_its_tokens_one_by_one(folded: str, most: int) -> None:
    assert text_prints(folded, most) == _plain_prints(folded, most)


@each_case("text", HOSTILE)
def test_the_prints_of_a_hostile_text_are_those_of_its_tokens_one_by_one(text: str) -> None:
    folded = folding.fold(text)
    assert text_prints(folded, MANY) == _plain_prints(folded, MANY)
    for most in range(8):
        assert text_prints(folded, most) == _plain_prints(folded, most)


@settings(deadline=None, max_examples=200)
@given(st.lists(TEXT.map(folding.fold), max_size=6))
def test_texts_that_are_read_together_have_the_prints_of_each_alone(texts: list[str]) -> None:
    for text, read in zip(texts, cheap_prints(texts), strict=True):
        if read is None:
            assert not text.isascii()
        else:
            assert (read[0], False) == _plain_prints(text, MANY)
            tokens = folding.tokens(text)
            assert (read[1], list(read[2])) == (len(tokens), list(triples(tokens)))


@each_case(
    "text",
    [
        "may '4'",
        "-4 of the may",
        "may of the 4th",
        "may, the 4th",
        "mar 4 de 2026",
        "may 'a' 4 x",
        "may be, or a 4",
        "4 may",
    ],
)
def test_a_day_with_the_name_of_its_month_is_found_whatever_stands_around_its_number(text: str) -> None:
    for around in (text, f"'{text}'", f"a {text} b", f"{text}\n{text} 2026"):
        assert text_prints(around, MANY) == _plain_prints(around, MANY)


def test_texts_share_what_is_kept_of_them_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_PRINTS", 10)
    read = read_result(None, "list", "1", {}, ["a b c", "d e f", "g h"], is_text=False, failed=False)
    kept = [prints(tokens) for tokens in (["a", "b", "c"], ["d", "e"], ["g"])]
    assert read.cut
    assert [sorted(found) for found in read.piece["p"].values()] == [sorted(found) for found in kept]


@given(st.lists(st.text("ab1", min_size=1, max_size=3), max_size=8))
def test_a_triple_is_of_three_tokens_that_follow_one_another(tokens: list[str]) -> None:
    def one(*some: str) -> int:
        first, second, third = (crc32(token.encode()) for token in some)
        return ((first * 0x9E3779B1 + second) % 2**32 * 0x9E3779B1 + third) % 2**32

    assert list(triples(tokens)) == [one(*tokens[at : at + 3]) for at in range(len(tokens) - 2)]


@given(st.lists(st.text("ab1", min_size=1, max_size=3), min_size=1, max_size=6))
def test_a_text_has_the_prints_of_every_value_within_it(tokens: list[str]) -> None:
    found, _ = text_prints(" ".join(tokens), MANY)
    for start in range(len(tokens)):
        for end in range(start + 1, len(tokens) + 1):
            assert found.issuperset(prints(tokens[start:end]))


def test_the_order_of_two_tokens_and_the_space_between_them_count() -> None:
    assert len({prints(["a", "b"])[2], prints(["b", "a"])[2], prints(["ab"])[0], prints(["a", "c"])[2]}) == 4


class _OtherError(Exception):
    """The result has another shape."""


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


@dataclass
class _Plain:
    """Walks a result one value after the other, and looks every place up anew."""

    kinds: tuple[tuple[str, str], ...]
    registry: tuple[str, ...]
    parents: list[int] = field(default_factory=lambda: [-1])
    values: list[list[Any]] = field(default_factory=list)
    prints: dict[int, set[int]] = field(default_factory=dict)

    def _fits(self, text: str, place: tuple[str, ...]) -> bool:
        tokens = parse(text)
        return len(tokens) <= len(place) and all(one in {"*", there} for one, there in zip(tokens, place, strict=False))

    def kind(self, place: tuple[str, ...]) -> tuple[str, bool]:
        fitting = [(parse(text), kind) for text, kind in self.kinds if self._fits(text, place)]
        longest = max((len(tokens) for tokens, _ in fitting), default=-1)
        kind = next((kind for tokens, kind in fitting if len(tokens) == longest), "free")
        if longest < len(place) and kind != "private":
            kind = "free"
        return kind, any(self._fits(text, place) and len(parse(text)) == len(place) for text in self.registry)

    def named_below(self, place: tuple[str, ...]) -> set[str]:
        texts = [*(text for text, _ in self.kinds), *self.registry]
        longer = [tokens for tokens in map(parse, texts) if len(tokens) > len(place)]
        return {
            tokens[len(place)]
            for tokens in longer
            if all(one in {"*", there} for one, there in zip(tokens, place, strict=False))
        }

    def trusted(self, place: tuple[str, ...]) -> bool:
        texts = [*(text for text, kind in self.kinds if kind not in {"free", "private"}), *self.registry]
        return any(
            len(parse(text)) >= len(place)
            and all(one in {"*", there} for one, there in zip(parse(text), place, strict=False))
            for text in texts
        )

    def check(self, value: Any, place: tuple[str, ...]) -> None:
        below = self.named_below(place)
        if value is None or isinstance(value, bool) or not (below and self.trusted(place)):
            return
        if not isinstance(value, (dict, list) if "*" in below else dict):
            raise _OtherError

    def knows(self, place: tuple[str, ...], key: str) -> bool:
        longer = [parse(text) for text, _ in self.kinds if len(parse(text)) > len(place)]
        here = {
            tokens[len(place)]
            for tokens in longer
            if all(one in {"*", there} for one, there in zip(tokens, place, strict=False))
        }
        return key in here or ("*" not in here and key.isascii() and key.isidentifier())

    def item(self, parent: int) -> int:
        self.parents.append(parent)
        return len(self.parents) - 1

    def read(self, value: Any, place: tuple[str, ...], item: int, name: str, depth: int = 0) -> None:
        self.check(value, place)
        if isinstance(value, dict):
            for key, one in value.items():
                below = (*place, key)
                if self.knows(place, key):
                    if key == "id" and key in self.named_below(place) and self.kind(below) == ("free", False):
                        self.read_key(one, item, depth + 1)
                    else:
                        self.read(one, below, item, key, depth + 1)
                    continue
                kind, registry = self.kind(below)
                inside = self.item(item)
                self.put(key, "naming" if kind in {"orderable", "private"} else kind, registry, inside, "")
                self.read(one, below, inside, key if kind == "private" else "", depth + 1)
        elif isinstance(value, list):
            for one in value:
                inside = self.item(item) if isinstance(one, dict) or not depth else item
                self.read(one, (*place, "*") if self.named_below(place) else place, inside, name, depth + 1)
        elif value is not None:
            self.put(value, *self.kind(place), item, name)

    def read_key(self, value: Any, item: int, depth: int) -> None:
        """Read what a catalog calls free and is an object's key by its name: naming, and what is below it free."""
        if isinstance(value, dict):
            inside = _Plain((), ())
            inside.parents, inside.values, inside.prints = self.parents, self.values, self.prints
            inside.read(value, (), item, "id", depth)
        elif isinstance(value, list):
            for one in value:
                self.read_key(one, self.item(item) if isinstance(one, dict) or not depth else item, depth + 1)
        elif value is not None:
            self.put(value, *("naming", False), item, "id")

    def put(self, value: Any, kind: str, registry: bool, item: int, name: str) -> None:
        code = kind[0] + ("r" if registry else "")
        if isinstance(value, bool):
            return
        if not isinstance(value, str):
            if number(value):
                self.values.append([number(value), code, item, name[:40]])
            return
        folded = folding.fold(value)
        tokens = [folded[start:end] for start, end in folding.spans(folded)]
        nested = kind != "private" and value.lstrip()[:1] in {"{", "["} and _is_json(value)
        if code == "f" or len(folded) > MAX_VALUE or nested or (kind == "naming" and len(tokens) > 12):
            self.prints.setdefault(item, set()).update(_plain_prints(folded, MANY)[0])
        elif tokens:
            norm, written = " ".join(tokens), " ".join(folding.written(value).split())
            self.values.append([norm, code, item, name[:40], *([] if written == norm else [written])])


KEYS = st.sampled_from(["id", "name", "to", "a b", "eve@evil.example", "clé", "*", "", "x-1"])
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=True),
    TEXT,
    st.sampled_from(["7-3", "[]", '{"id": "7"}', "[note]", "budget.docx", "Ana Pérez", "é", "long " * 60, "a " * 13]),
)
RESULTS = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)
POINTERS = st.sampled_from(["", "/*", "/*/id", "/id", "/name", "/*/name", "/*/*", "/to/*", "/*/to/name"])
KINDS = st.lists(
    st.tuples(POINTERS, st.sampled_from(["system", "naming", "free", "private", "orderable"])),
    max_size=5,
    unique_by=lambda one: one[0],
)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(RESULTS, KINDS, st.lists(POINTERS, max_size=2))
def test_a_result_is_read_as_it_is_one_value_after_the_other(
    result: Any, kinds: list[tuple[str, str]], registry: list[str]
) -> None:
    tool = replace(NO_TOOL, outputs=tuple(kinds), registry=tuple(registry))
    reading = read_result(tool, "inbox", "c", {}, result, is_text=False, failed=False)
    plain = _Plain(tuple(kinds), tuple(registry))
    try:
        plain.read(result, (), 0, "")
    except _OtherError:
        plain = _Plain(tuple(one for one in kinds if one[1] == "private"), ())
        plain.read(result, (), 0, "")
    piece = reading.piece
    assert (piece["i"], piece["v"], reading.cut) == (plain.parents, plain.values, False)
    assert {int(item): set(found) for item, found in piece["p"].items()} == plain.prints
    opened, numbered = unpacked(packed(piece)[0]), [name for name in "pdfsr" if name in piece]
    without = dict.fromkeys(numbered)
    assert opened | without == piece | without
    for name in numbered:
        assert {item: list(found) for item, found in opened[name].items()} == {
            item: list(found) for item, found in piece[name].items()
        }


MAIL = replace(
    NO_TOOL,
    outputs=(
        ("/id", "system"),
        ("/to/*", "naming"),
        ("/folder/name", "naming"),
        ("/phone", "private"),
        ("/body", "free"),
    ),
    registry=("/to/*",),
)
SENT = replace(NO_TOOL, outputs=(("", "system"), ("/note", "free")))
GOOD = {"id": "em_1", "to": ["ana@acme.example"], "folder": {"name": "work"}, "phone": "600111222", "body": "hello"}


def believed(tool: CatalogTool, result: Any) -> dict[str, str]:
    values = read_result(tool, "inbox", "c", {}, result, is_text=False, failed=False).piece["v"]
    return {norm: kind for norm, kind, *_ in values}


def test_a_result_is_believed_field_by_field() -> None:
    good = {"em_1": "s", "ana@acme.example": "nr", "work": "n", "600111222": "p"}
    assert believed(MAIL, GOOD) == good
    assert believed(MAIL, GOOD | {"also": "em_2", "more": {"id": "em_3"}, "a b": "em_4"}) == good
    assert believed(MAIL, GOOD | {"id": {"id": "em_2", "eve@evil.example": "em_3"}}) == {
        norm: kind for norm, kind in good.items() if norm != "em_1"
    }
    assert believed(SENT, {"id": "em_1", "note": "em_2"}) == {}


@pytest.mark.parametrize(
    "result",
    [
        [GOOD],
        json.dumps(GOOD),
        GOOD | {"folder": "work"},
        GOOD | {"folder": [{"name": "work"}]},
        GOOD | {"folder": 7},
        GOOD | {"to": "ana@acme.example"},
    ],
)
def test_a_result_of_another_shape_is_believed_in_nothing_and_keeps_what_is_private(result: Any) -> None:
    found = believed(MAIL, result)
    assert set(found.values()) <= {"p", "f"}
    assert not isinstance(result, dict) or found["600111222"] == "p"
    assert believed(SENT, "sent as em_1") == {}
    assert believed(SENT, ["em_1"]) == {}


@pytest.mark.parametrize("value", ['{"id": "em_2"}', ' [{"id": "em_2"}]', "[7]"])
def test_json_within_a_text_is_a_text(value: str) -> None:
    assert believed(MAIL, GOOD | {"id": value}).get("em_1") is None
    assert "s" not in believed(MAIL, GOOD | {"id": value}).values()
    assert "s" in believed(MAIL, GOOD | {"id": "[7"}).values()


@given(st.integers() | st.floats())
def test_a_number_is_written_as_its_digits_are(value: float) -> None:
    assert number(value) == number(repr(value))

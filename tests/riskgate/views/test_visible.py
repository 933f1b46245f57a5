"""Display of hostile text is cheap: bounded work, with the same result character by character."""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter
from itertools import accumulate, takewhile

import pytest
from phylactery_riskgate.domain.model import Mark
from phylactery_riskgate.domain.views import visible
from phylactery_riskgate.domain.views.view import _escape_around, abridge
from phylactery_riskgate.domain.views.visible import make_visible

_ALPHABETS = (
    "abc XYZ",
    "éñç",
    "абгдеж",
    "аеорс",
    "οαβγ",
    "\u200b\u202e\u0301\u0302\u0316",
    '\\\\n"',
    "١٢٣ 12",
    "中文 ",
    "ⅷ𝕬",
    "_-. ",
    "\n\t\x1b",
    "\ud800",
    "ǃª²º",
)
_MEGABYTE = 1024 * 1024


def _text(chance: random.Random, length: int) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < length:
        parts.append("".join(chance.choices(chance.choice(_ALPHABETS), k=chance.randint(1, chance.choice([2, 5, 40])))))
    return "".join(parts)


def _one_by_one(text: str) -> list[tuple[str, Mark | None]]:
    """The rule written as plainly as it goes: each character by itself, by its word, and by the marks before it."""
    posing = {}
    for match in visible._WORD.finditer(text):
        word = match.group(1)
        if word is None or word.isascii():
            continue
        letters = [(match.start(1) + at, char) for at, char in enumerate(word) if char.isalpha()]
        foreign = [(at, char) for at, char in letters if not visible._latin(char)]
        digits = [match.start(1) + at for at, char in enumerate(word) if visible._foreign_digit(char)]
        close = {visible._script(char) for _, char in foreign} & visible._CLOSE_SCRIPTS
        mixed = len(foreign) < len(letters) or len(close) > 1
        if mixed or all(visible._twin(char) for _, char in foreign):
            posing |= dict.fromkeys((at for at, _ in foreign), Mark.MIXED_SCRIPT if mixed else Mark.LOOK_ALIKE)
        if digits and any(char.isascii() for char in word):
            posing |= dict.fromkeys(digits, Mark.MIXED_SCRIPT)
        latin = (at for at, char in letters if visible._latin(char) and char in visible.ASCII_OF)
        posing |= dict.fromkeys(latin, Mark.LOOK_ALIKE)
    pieces, piled = [], 0
    for at, char in enumerate(text):
        piled = piled + 1 if unicodedata.combining(char) else 0
        mark = posing.get(at) or visible._mark(char) or (Mark.PILED_UP if piled > 3 else None)
        pieces.append((visible._escaped(char) if mark else char, mark))
    return pieces


def _fitting(pieces: list[tuple[str, Mark | None]], room: int) -> int:
    sizes = accumulate(len(piece) for piece, _ in pieces)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


@pytest.mark.parametrize("block", [1, 7, 4_096])
def test_a_text_is_shown_as_its_characters_are_one_by_one_whatever_is_looked_at_together(monkeypatch, block):
    monkeypatch.setattr(visible, "_BLOCK", block)
    chance = random.Random(block)
    for _ in range(300):
        text = _text(chance, chance.choice([3, 20, 100, 300]))
        pieces = _one_by_one(text)
        shown = make_visible(text, 10 * len(text) + 12)
        assert shown.text == "".join(piece for piece, _ in pieces)
        assert shown.marks == {mark for _, mark in pieces if mark}


@pytest.mark.parametrize("block", [1, 7, 4_096])
def test_what_does_not_fit_is_shown_from_both_ends_by_whole_characters(monkeypatch, block):
    monkeypatch.setattr(visible, "_BLOCK", block)
    chance = random.Random(block)
    for _ in range(200):
        text = json.dumps(_text(chance, 400), ensure_ascii=False)
        shown = abridge(text, 200)
        first = (200 - 40) * 10 // 19
        starts, ends = _one_by_one(text[: first + 64]), _one_by_one(text[-(160 - first + 64) :])
        head = _escape_around(text, _fitting(starts, first))[0]
        tail = len(text) - _escape_around(text, len(text) - _fitting(ends[::-1], 160 - first))[1]
        left = len(text) - head - tail
        parts = ["".join(piece for piece, _ in part) for part in (starts[:head], ends[len(ends) - tail :])]
        assert shown.text == f"{parts[0]}…«{left:,} characters left out»…{parts[1]}"
        marks = {mark for _, mark in starts[:head] + ends[len(ends) - tail :] if mark}
        assert (shown.marks, shown.left_out) == (marks | {Mark.CUT}, left)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["ао" * 250_000, "бж" * 250_000, "\u200b" * 333_000, "é" * 500_000, "中" * 350_000, "x" * 999_000],
    ids=["twins", "cyrillic", "zero width", "latin", "han", "plain"],
)
def test_a_megabyte_is_not_looked_at_character_by_character(monkeypatch, text):
    asked: Counter[str] = Counter()
    for name in ("_mark", "_latin", "_twin", "_script", "_escapes_of"):
        real = getattr(visible, name)

        def counted(*given, _name=name, _real=real):
            asked[_name] += 1
            return _real(*given)

        monkeypatch.setattr(visible, name, counted)
    shown = abridge(json.dumps(text, ensure_ascii=False), _MEGABYTE)
    assert len(shown.text) <= _MEGABYTE
    assert sum(asked.values()) <= 5_000, asked

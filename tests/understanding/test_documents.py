"""The one reader of YAML: what a small text could make large, or two readers would read differently, is refused."""

from __future__ import annotations

import pytest
from phylactery_understanding.documents import MAX_DEPTH, MAX_DIGITS, YamlFault, read_yaml

from tests.support.cases import each_case
from tests.support.effort import assert_within

LAUGHS = "\n".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 9)}]" for name, below in zip("bcdefgh", "abcdefg", strict=True)
)
HOSTILE = {
    "billion laughs": (f"a: &a [x]\n{LAUGHS}\n", "2:8: the alias *a is not read"),
    "billion laughs of mappings": ("a: &a {k: v}\nb: &b {k: *a, l: *a}\n", "2:11: the alias *a is not read"),
    "a circle": ("a: &a [*a]\n", "1:8: the alias *a is not read"),
    "an alias as a key": ("a: &a x\n*a : y\n", "2:1: the alias *a is not read"),
    "a merge": ("a: &a {k: v}\nb:\n  <<: *a\n", "3:7: the alias *a is not read"),
    "a merge without an alias": ("b:\n  <<: {k: v}\n", "2:3: the merge key << is not read"),
    "a merge by its tag": ("b: {!!merge x: {k: v}}\n", "1:5: the merge key << is not read"),
    "a key given twice": ("a: 1\nb: 2\n'a': 3\n", "3:1: 'a' is in line 1 already"),
    "a key given twice below": ("a:\n  - {b: 1, b: 2}\n", "2:12: 'b' is in line 2 already"),
    "a number as a key": ("a: {1: x}\n", "1:5: the key 1 must be a text; put it in quotes"),
    "a word that is no text": ("on: x\n", "1:1: the key on must be a text"),
    "a day as a key": ("2026-05-01: x\n", "1:1: the key 2026-05-01 must be a text"),
    "a list as a key": ("? [a, b]\n: x\n", "1:3: a key must be a text"),
    "lists in lists": ("a: " + "[" * 5_000, "is nested deeper than"),
    "mappings in mappings": ("".join(f"{' ' * at}a:\n" for at in range(MAX_DEPTH + 2)), "is nested deeper than"),
    "lists by dashes": ("- " * 50_000 + "x", "is nested deeper than"),
    "a long number": (f"a: {'1' * (MAX_DIGITS + 1)}\n", "1:4: a number has at most 400 digits"),
    "a long number of base 60": (f"a: {':'.join(['59'] * 80_000)}\n", "1:4: a number has at most 400 digits"),
    "a long number of base 16": (f"a: 0x{'f' * 500}\n", "1:4: a number has at most 400 digits"),
    "two documents": ("a: 1\n---\nb: 2\n", "but found another document"),
    "a tag of a language": ("a: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
    "no such day": ("a: 2026-02-30\n", "a value cannot be read"),
    "what is not closed": ("a: [b\n", "2:1: "),
    "a character that is none": ("a: \x00\n", "is not valid YAML"),
}


@each_case("kind", HOSTILE)
def test_what_could_become_large_or_mean_two_things_is_refused_with_its_place(kind: str) -> None:
    text, told = HOSTILE[kind]

    def refused() -> None:
        with pytest.raises(YamlFault) as raised:
            read_yaml(text)
        place, column = raised.value.line, str(raised.value).rpartition("(column ")[2].rstrip(")")
        assert told in f"{place}:{column}: {raised.value}"

    assert_within(0.5, refused)


def test_everything_else_is_read_as_before() -> None:
    text = "a: &unused [1, 2.5, true, null, '1', yes, 2026-05-01]\nb: {c: !!binary aGk=}\n# *no alias\nd: '*a <<'\n"
    read = read_yaml(text)
    assert [*read["a"][:5], read["b"], read["d"]] == [1, 2.5, True, None, "1", {"c": b"hi"}, "*a <<"]
    assert read_yaml("") is None

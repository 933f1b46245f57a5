"""Positions of values in a tool's result, and that a result's keys take no space."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.domain.intent.outputs import Place, outputs
from phylactery_riskgate.domain.pointers import parse, pointer

KINDS = (("/*/id", "system"), ("/*/tags/*", "naming"))


def _at(place: Place, *keys: str) -> Place:
    for key in keys:
        place = place.below(key)
    return place


def test_a_place_is_what_the_catalog_says() -> None:
    for _ in range(2):
        whole = outputs(KINDS, ("/*/id",))
        assert (_at(whole, "*", "id").kind, _at(whole, "*", "id").registry) == ("system", True)
        assert (_at(whole, "*", "tags", "new").kind, _at(whole, "*", "tags", "new").registry) == ("naming", False)
        assert _at(whole, "*", "body").free
        assert _at(whole, "*").knows("id")
        assert not _at(whole, "*", "tags").knows("new")


def test_tools_with_other_pointers_share_nothing() -> None:
    assert not _at(outputs(KINDS, ()), "*", "id").registry
    assert _at(outputs((("/*/id", "private"),), ()), "*", "id").kind == "private"


def test_all_keys_that_no_pointer_names_are_one_place() -> None:
    whole = outputs((("/few/*", "system"),), ())
    assert whole.below("few") is whole.below("few")
    assert {id(whole.below(f"key{number}")) for number in range(5_000)} == {id(whole.below("x" * 1_000_000))}
    assert {id(_at(whole, "few", f"key{number}", "deeper")) for number in range(5_000)} == {
        id(_at(whole, "few", "x", "y"))
    }
    assert whole.knows("key1")
    assert not whole.knows("x" * 1_000_000)
    assert not whole.knows("ana@acme.es")
    assert not whole.knows("clé")


TOKENS = st.sampled_from(["*", "a", "b", "id"])
POINTERS = st.lists(TOKENS, max_size=4).map(pointer)
KIND = st.sampled_from(["system", "naming", "free", "private", "orderable"])


@given(
    st.lists(st.tuples(POINTERS, KIND), max_size=6, unique_by=lambda one: one[0]),
    st.lists(POINTERS, max_size=3),
    st.lists(TOKENS | st.sampled_from(["other", "a b", ""]), max_size=6),
)
def test_of_all_pointers_that_fit_the_longest_says_what_a_place_is(
    kinds: list[tuple[str, str]], registry: list[str], keys: list[str]
) -> None:
    def fits(text: str) -> bool:
        tokens = parse(text)
        return len(tokens) <= len(keys) and all(token in {"*", key} for token, key in zip(tokens, keys, strict=False))

    place = _at(outputs(tuple(kinds), tuple(registry)), *keys)
    fitting = [(len(parse(text)), -number, kind) for number, (text, kind) in enumerate(kinds) if fits(text)]
    longest, _, kind = max(fitting, default=(0, 0, "free"))
    assert place.kind == (kind if longest == len(keys) or kind == "private" else "free")
    assert place.registry == any(len(parse(text)) == len(keys) and fits(text) for text in registry)
    for key in ("id", "other", "a b"):
        here = {
            tokens[len(keys)]
            for text, _ in kinds
            if len(tokens := parse(text)) > len(keys)
            and all(token in {"*", there} for token, there in zip(tokens, keys, strict=False))
        }
        assert place.knows(key) == (key in here or ("*" not in here and key != "a b"))

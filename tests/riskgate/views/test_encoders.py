"""The fast encoder's output for the store, for Cedar and under seal equals the standard library's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.audit.log import _plain
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.store.tables import from_json, to_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SIMPLE = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | TEXTS
"""What a column and a context hold: a decimal and a time are texts there."""
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=20)


@given(nested(SIMPLE))
def test_a_column_holds_the_very_bytes_and_is_read_as_it_was(value: Any):
    written = to_json(value)
    assert written == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert from_json(written) == value


@pytest.mark.slow
@given(st.dictionaries(TEXTS, nested(NUMBERS | TEXTS | st.none() | st.booleans()), max_size=5))
def test_sealed_values_are_read_as_they_were_and_commit_to_the_same(values: dict[str, Any]):
    salts = dict.fromkeys(values, "c2FsdA")
    opened = json.loads(_plain(salts, values))
    assert opened == json.loads(json.dumps({"salts": salts, "values": values})) == {"salts": salts, "values": values}
    assert list(opened["values"]) == list(values)
    assert {name: canonical_bytes(one) for name, one in opened["values"].items()} == {
        name: canonical_bytes(one) for name, one in values.items()
    }


def test_values_nested_deeper_than_the_fast_encoder_goes_are_sealed_all_the_same():
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    assert json.loads(_plain({"/a": "s"}, {"/a": deep})) == {"salts": {"/a": "s"}, "values": {"/a": deep}}

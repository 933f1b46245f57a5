from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from phylactery_chassis.util.crypto import sha256
from phylactery_riskgate.domain.canonical import canonical_bytes, hash_json

VECTORS = ("arrays", "french", "structures", "unicode", "values", "weird")


@pytest.mark.parametrize("name", VECTORS)
def test_the_official_vectors_come_out_byte_for_byte(data_folder: Path, name: str) -> None:
    folder = data_folder / "conformance" / "jcs"
    value = json.loads((folder / "input" / f"{name}.json").read_text(encoding="utf-8"))
    assert canonical_bytes(value) == (folder / "output" / f"{name}.json").read_bytes()


def test_every_official_vector_there_is_was_looked_at(data_folder: Path) -> None:
    found = {path.stem for path in (data_folder / "conformance" / "jcs" / "input").glob("*.json")}
    assert found == set(VECTORS)


@pytest.mark.parametrize("name", VECTORS)
def test_the_canonical_form_of_a_canonical_form_is_itself(data_folder: Path, name: str) -> None:
    canonical = (data_folder / "conformance" / "jcs" / "output" / f"{name}.json").read_bytes()
    assert canonical_bytes(json.loads(canonical)) == canonical


def test_a_hash_is_written_with_its_algorithm() -> None:
    assert sha256(b"{}") == "sha256:" + hashlib.sha256(b"{}").hexdigest()


_NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXTS | st.text("ab\U0001f600\uffff\ue000"), inner),
)


@pytest.mark.slow
@given(_VALUES)
def test_the_short_way_writes_what_the_reference_writes(value: object) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


def test_the_order_of_keys_does_not_change_the_hash_and_a_type_does() -> None:
    assert hash_json({"a": 1, "b": 2}) == hash_json({"b": 2, "a": 1})
    assert hash_json({"a": 2}) != hash_json({"a": "2"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, {"a": "\ud800"}, {"a": b"x"}])
def test_what_has_no_canonical_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical_bytes(value)

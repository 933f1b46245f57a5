"""The Merkle tree against RFC 6962, official proof vectors, and its own properties."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.audit.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_path,
    inclusion_path,
    leaf_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)

RFC_LEAVES = [bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")]


def leaves(count: int) -> list[bytes]:
    return [leaf_hash(str(number).encode()) for number in range(count)]


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    return [root_of(leaves[first:end]) for first, end in inclusion_path(index, len(leaves))]


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    return [root_of(leaves[first:end]) for first, end in consistency_path(old_size, len(leaves))]


def decoded(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def vectors(folder: Path, kind: str) -> list[tuple[str, dict[str, object]]]:
    found = sorted((folder / "conformance" / "merkle" / kind).rglob("*.json"))
    assert len(found) == 98
    return [(str(path), json.loads(path.read_text())) for path in found]


def test_every_official_inclusion_vector_gets_its_verdict(data_folder):
    for path, vector in vectors(data_folder, "inclusion"):
        proof = [decoded(node) for node in vector["proof"] or []]
        verdict = verify_inclusion(
            decoded(vector["leafHash"]), vector["leafIdx"], vector["treeSize"], proof, decoded(vector["root"])
        )
        assert verdict is not vector["wantErr"], path


def test_every_official_consistency_vector_gets_its_verdict(data_folder):
    for path, vector in vectors(data_folder, "consistency"):
        proof = [decoded(node) for node in vector["proof"] or []]
        verdict = verify_consistency(
            vector["size1"], vector["size2"], proof, decoded(vector["root1"]), decoded(vector["root2"])
        )
        assert verdict is not vector["wantErr"], path


def test_the_heads_are_those_of_the_well_known_example_tree():
    hashes = [leaf_hash(data) for data in RFC_LEAVES]
    assert root_of([]) == EMPTY_ROOT == hashlib.sha256(b"").digest()
    assert root_of(hashes[:1]).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert root_of(hashes[:7]).hex() == "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"


@given(st.integers(1, 70), st.data())
def test_every_leaf_of_every_tree_is_proved_and_no_other(size, data):
    hashes, index = leaves(size), data.draw(st.integers(0, size - 1))
    proof, root = inclusion_proof(hashes, index), root_of(hashes)
    assert verify_inclusion(hashes[index], index, size, proof, root)
    assert not verify_inclusion(leaf_hash(b"other"), index, size, proof, root)
    assert not verify_inclusion(hashes[index], index, size, [*proof, root], root)
    assert not verify_inclusion(hashes[index], index, size + 1, proof, leaf_hash(b"x"))


@given(st.integers(1, 70), st.data())
def test_every_prefix_is_proved_consistent_and_an_altered_one_is_not(size, data):
    hashes, old = leaves(size), data.draw(st.integers(1, size))
    proof, root = consistency_proof(hashes, old), root_of(hashes)
    assert verify_consistency(old, size, proof, root_of(hashes[:old]), root)
    altered = [leaf_hash(b"altered"), *hashes[1:old]]
    assert not verify_consistency(old, size, proof, root_of(altered), root)


@given(st.integers(0, 200))
def test_a_frontier_survives_being_written_down(size):
    frontier = Frontier()
    for leaf in leaves(size):
        frontier = Frontier.from_bytes(frontier.size, frontier.to_bytes()).append(leaf)
    assert frontier.root() == root_of(leaves(size))
    with pytest.raises(ValueError, match="no frontier"):
        Frontier.from_bytes(size, frontier.to_bytes() + b"x")


@pytest.mark.parametrize("old", [0, 4, -1])
def test_a_proof_that_cannot_be_is_refused(old):
    with pytest.raises(ValueError, match="cannot be compared"):
        consistency_proof(leaves(3), old)
    with pytest.raises(ValueError, match="is not in a tree"):
        inclusion_proof(leaves(3), 3)

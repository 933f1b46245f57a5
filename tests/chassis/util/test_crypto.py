"""Hashes, sealed values, key files, and files that are written as a whole."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from phylactery_chassis.util.crypto import (
    OTHERS_WRITE,
    Box,
    ExposedKeyError,
    create_key_file,
    keyed_hash,
    read_key_file,
    sha256,
)
from phylactery_chassis.util.durable_files import whole_file, write_whole


def test_hashes_are_those_of_the_standards() -> None:
    assert sha256("abc") == sha256(b"abc")
    assert sha256(b"abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    # RFC 4231, case 2
    expected = "hmac-sha256:5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert keyed_hash(b"Jefe", b"what do ya want for nothing?") == expected


def test_a_sealed_value_opens_only_as_it_was_sealed_where_it_was_sealed() -> None:
    box = Box(b"k" * 32)
    sealed = box.seal(b"value", b"here")
    assert b"value" not in sealed
    assert box.seal(b"value", b"here") != sealed
    assert box.open(sealed, b"here") == b"value"
    assert box.open(sealed, b"there") is None
    assert Box(b"l" * 32).open(sealed, b"here") is None
    for altered in (sealed[:-1], sealed[1:], sealed[:-1] + bytes([sealed[-1] ^ 1]), sealed[:8], b""):
        assert box.open(altered, b"here") is None


def test_many_that_create_one_key_file_agree_on_one_key_and_leave_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "one.key"

    def create(_: int) -> bytes:
        create_key_file(path, lambda: os.urandom(32))
        return read_key_file(path)

    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(create, range(16)))) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["one.key"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_file_others_have_rights_on_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "one.key"
    create_key_file(path, lambda: b"key")
    path.chmod(0o644)
    with pytest.raises(ExposedKeyError, match=rf"{path}: mode 0644.*chmod 600 {path}"):
        read_key_file(path)
    assert read_key_file(path, forbidden=OTHERS_WRITE) == b"key"


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_whose_writing_fails_halfway_is_as_it_was_before(tmp_path: Path, *, replace: bool) -> None:
    path = tmp_path / "file"
    if replace:
        path.write_bytes(b"before")

    def half() -> None:
        with whole_file(path, replace=replace) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("file", b"before")] * replace


def test_without_replace_an_existing_file_stays(tmp_path: Path) -> None:
    write_whole(tmp_path / "file", b"first", replace=False)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", b"second", replace=False)
    before = os.umask(0o022)
    write_whole(tmp_path / "file", b"third", mode=0o644)
    os.umask(before)
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"third"]
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644

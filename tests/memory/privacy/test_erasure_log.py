"""The erasure log: read back as written, rejected if damaged, and its unfinished entries."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from phylactery_chassis.erasure.erasures import unfinished
from phylactery_chassis.erasure.log import ErasureLog
from phylactery_chassis.errors import StartError, Unavailable
from phylactery_memory.privacy.model import Erasure

from tests.support.databases.erasures import erasure_of


def log_at(path):
    return ErasureLog(path, Erasure, "MEMORY_ERASURE_LOG")


def test_the_log_reads_back_what_was_appended_and_drops_a_cut_line(tmp_path):
    path = tmp_path / "erasures.jsonl"
    log = log_at(path)
    for number in range(3):
        log.append(erasure_of(number))
    whole = path.read_bytes()
    for cut in (1, 40, len(whole) // 3):
        path.write_bytes(whole[:-cut])
        again = log_at(path)
        assert again.salt == log.salt
        assert list(again.read()) == [erasure_of(n) for n in range(len(again.read()))]
        assert path.read_bytes().endswith(b"\n")
    assert Erasure.from_json(erasure_of(1).to_json()) == erasure_of(1)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("line", ["not json", "{}", '{"erasure_id": 1}', "[1]", '"x"', "\x00\x00"])
def test_a_damaged_line_of_the_log_keeps_the_service_from_starting(tmp_path, line):
    path = tmp_path / "erasures.jsonl"
    log = log_at(path)
    log.append(erasure_of(1))
    with path.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(StartError, match=r"line 3 of .*erasures\.jsonl is not a valid erasure"):
        log.read()
    path.write_text(line + "\n")
    with pytest.raises(StartError, match="line 1"):
        log_at(path)


def test_what_is_still_to_be_erased_is_what_no_later_erasure_of_the_user_took():
    one, two, three = erasure_of(1), erasure_of(2), replace(erasure_of(3), subject_hash="sha256:" + "b" * 64)
    for known, left in (
        ((), [one, two, three]),
        (("era_1",), [two, three]),
        (("era_2",), [three]),
        (("era_3",), [one, two]),
        (("era_1", "era_2", "era_3"), []),
    ):
        assert unfinished([one, two, three], known) == left


def test_a_log_that_cannot_be_written_is_said_in_a_sentence(tmp_path):
    with pytest.raises(StartError, match="cannot be the log of erasures"):
        log_at(tmp_path / "missing" / "erasures.jsonl")
    log = log_at(tmp_path / "erasures.jsonl")
    shutil.rmtree(tmp_path)
    with pytest.raises(Unavailable, match="nothing was erased"):
        log.append(erasure_of(1))
